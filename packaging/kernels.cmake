# tilec_add_kernels(TARGET FILE.tile... TARGETS sm_80 sm_90a... [DEFINES NAME=VALUE...] [CONFIGS NAME=VALUE,...] [FORMS FACT,...]
#                   [CHOICES FILE] [IMPORTS FOLDER...] [OPTIONS OPTION...] [CUBIN])
#   Compiles the files when the program is built, for each of the targets, and puts what comes out into the program or library TARGET: for
#   softmax.tile there is then "softmax_kernels.h" with a C function for each kernel (tilec --emit=c), which launches it:
#       int softmax(TilertStream *stream, const float *x, float *y, int32_t rows, int32_t n, int32_t stride, TilertError *err);
#   TARGET is linked with tilec::runtime, unless it is linked with one of tilec's libraries; no compiler is needed where it runs. What is linked
#   with a library TARGET may include the header, too.
#   DEFINES set const and type parameters, CONFIGS make a function for each of several settings ("tune": those that the kernels list), FORMS
#   code for special arguments, CHOICES what tuning chose (tilerun --tune --choices=FILE), CUBIN puts in what ptxas makes, too; IMPORTS are
#   folders in which imported files are looked for, OPTIONS go to tilec. A file is compiled again when it changes, or one that it imports, or
#   the compiler. The project has to have the language C.
#   The compiler is tilec::tilec, or, in a cross build, this machine's: what the variable TILEC_EXECUTABLE names, else tilec on the PATH.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)                  # of the functions: CMP0116, how a rule of make names its files

function(tilec_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CUBIN" "CHOICES" "TARGETS;DEFINES;CONFIGS;FORMS;IMPORTS;OPTIONS")
  if(NOT arg_UNPARSED_ARGUMENTS OR NOT arg_TARGETS)
    message(FATAL_ERROR "tilec_add_kernels(TARGET FILE... TARGETS NAME...): a file and a target are needed")
  endif()
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "tilec_add_kernels: there is no program or library '${target}'")
  endif()
  tilec_find_compiler(compiler)
  list(JOIN arg_TARGETS "," targets)
  set(options --target=${targets} ${arg_OPTIONS})
  set(chosen)
  if(arg_CUBIN)
    list(APPEND options --cubin)
  endif()
  foreach(define ${arg_DEFINES})
    list(APPEND options -D ${define})
  endforeach()
  foreach(config ${arg_CONFIGS})
    list(APPEND options --config=${config})
  endforeach()
  foreach(form ${arg_FORMS})
    list(APPEND options --form=${form})
  endforeach()
  if(arg_CHOICES)
    get_filename_component(chosen ${arg_CHOICES} ABSOLUTE)
    list(APPEND options --choices=${chosen})
  endif()
  foreach(folder ${arg_IMPORTS})
    get_filename_component(folder ${folder} ABSOLUTE)
    list(APPEND options -I ${folder})
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels)
  file(MAKE_DIRECTORY ${out})
  foreach(file ${arg_UNPARSED_ARGUMENTS})
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WLE)
    set(source ${out}/${name}_kernels.c)
    set(header ${out}/${name}_kernels.h)
    set(read ${out}/${name}_kernels.d)
    add_custom_command(OUTPUT ${source} ${header} COMMAND ${compiler} ${path} --emit=c -o ${source} --depfile=${read} ${options}
      DEPENDS ${path} ${chosen} ${compiler} DEPFILE ${read} COMMENT "Compiling ${file} for ${targets}" VERBATIM)
    target_sources(${target} PRIVATE ${source} ${header})
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${out}>)
  # When all of this folder's list is read, as what the target is linked with may be said behind this.
  get_target_property(asked ${target} TILEC_KERNELS)
  if(NOT asked)
    set_target_properties(${target} PROPERTIES TILEC_KERNELS TRUE)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL tilec_link_kernels [[${target}]])")
  endif()
endfunction()

# Links what has kernels with the runtime. By properties: target_link_libraries goes with or without keywords, as the project has it.
function(tilec_link_kernels target)
  get_target_property(linked ${target} LINK_LIBRARIES)
  get_target_property(type ${target} TYPE)
  if(NOT linked MATCHES "tilec::(runtime|simulator_static|compiler)")
    set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES tilec::runtime)
    if(NOT type STREQUAL "EXECUTABLE")
      set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES tilec::runtime)
    endif()
  endif()
  # Whatever it is linked with: its header includes tilec's.
  target_include_directories(${target} SYSTEM INTERFACE $<BUILD_INTERFACE:$<TARGET_PROPERTY:tilec::runtime,INTERFACE_INCLUDE_DIRECTORIES>>)
endfunction()

# A compiler that runs on this machine.
function(tilec_find_compiler out)
  if(NOT TILEC_EXECUTABLE AND TARGET tilec::tilec AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(${out} tilec::tilec PARENT_SCOPE)
    return()
  endif()
  find_program(TILEC_EXECUTABLE tilec NO_CMAKE_FIND_ROOT_PATH)
  if(NOT TILEC_EXECUTABLE)
    message(FATAL_ERROR "tilec_add_kernels: there is no compiler that runs here: neither the component tools nor tilec on the PATH; "
      "TILEC_EXECUTABLE names one")
  endif()
  set(${out} ${TILEC_EXECUTABLE} PARENT_SCOPE)
endfunction()
cmake_policy(POP)
