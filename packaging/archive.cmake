# ninja -C BUILD tilec_archive: libtilec as an archive, BUILD/lib/libtilec.a, of one object with all of LLVM that it needs inside, some 80 MB
# (archive.py). `cmake --install BUILD --component compiler_static` installs it; without --component it is left out.
set(llvm_tools ${LLVM_TOOLS_BINARY_DIR})
if(CMAKE_CROSSCOMPILING)                # LLVM's own tools are the host's there; those of this machine know the same archives and any object
  set(llvm_tools /usr/lib/llvm-22/bin)
endif()
find_program(TILEC_LLVM_CONFIG llvm-config HINTS ${llvm_tools} NO_DEFAULT_PATH)
find_program(TILEC_LLVM_OBJCOPY llvm-objcopy HINTS ${llvm_tools} NO_DEFAULT_PATH)
if(NOT LLD OR NOT TILEC_LLVM_CONFIG OR NOT TILEC_LLVM_OBJCOPY OR TILEC_SANITIZE OR TILEC_TSAN OR TILEC_FUZZ)
  return()
endif()
execute_process(COMMAND ${TILEC_LLVM_CONFIG} --link-static --libnames ${llvm_components} OUTPUT_VARIABLE inside OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(inside UNIX_COMMAND "${inside}")
list(TRANSFORM inside PREPEND ${LLVM_LIBRARY_DIR}/)
list(APPEND inside ${STATIC_z} ${STATIC_zstd})
foreach(lib stdc++ gcc gcc_eh)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${lib}.a OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND inside ${path})
endforeach()
set(archive ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libtilec.a)
add_custom_command(OUTPUT ${archive}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/archive.py $<TARGET_FILE:tilec> ${archive} ${TILEC_LLVM_OBJCOPY} ${CMAKE_AR}
    ${CMAKE_CXX_COMPILER} -B${CMAKE_BINARY_DIR}/linker -fuse-ld=lld ${llvm_locks} ${compiler} ${inside}
  DEPENDS tilec ${compiler} ${CMAKE_CURRENT_LIST_DIR}/archive.py COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(tilec_archive DEPENDS ${archive})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT compiler_static EXCLUDE_FROM_ALL)
file(RELATIVE_PATH TILEC_CMAKE_PREFIX /x/${TILEC_CMAKE_DIR} /x)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tilec-compiler_static.cmake.in ${CMAKE_BINARY_DIR}/tilec-compiler_static.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tilec-compiler_static.cmake DESTINATION ${TILEC_CMAKE_DIR} COMPONENT compiler_static EXCLUDE_FROM_ALL)
