# ninja -C BUILD wheel: the Python package as a wheel, under BUILD/wheel. libtilec is linked once more for it, as small as it gets: the same
# functions once (lld's ICF, which leaves data alone), relocations packed, no names of functions, and without the passes of LLVM that nothing
# runs: PassBuilder refers to all that there are, so references to those in left_out.txt are led elsewhere, and the linker drops the rest.
if(NOT TARGET tilec_python)
  return()
endif()
set(package ${CMAKE_BINARY_DIR}/wheel/tilec)
add_library(tilec_small SHARED EXCLUDE_FROM_ALL ${compiler} packaging/left_out.c)
target_include_directories(tilec_small INTERFACE ${CMAKE_SOURCE_DIR}/driver ${CMAKE_SOURCE_DIR}/runtime)
target_link_libraries(tilec_small PRIVATE ${llvm} Threads::Threads ${CMAKE_DL_LIBS} m)
get_target_property(options tilec LINK_OPTIONS)
target_link_options(tilec_small PRIVATE ${options} -Wl,-s)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/left_out.txt left_out REGEX "^_ZN")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/left_out.txt)
foreach(pass ${left_out})
  target_link_options(tilec_small PRIVATE -Wl,--wrap=${pass} -Wl,--defsym=__wrap_${pass}=tilec_pass_left_out)
endforeach()
if(LLD)
  target_link_options(tilec_small PRIVATE -Wl,--icf=all -Wl,-z,pack-relative-relocs -Wl,-O2)
endif()
set_target_properties(tilec_small PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME tilec VERSION ${TILEC_SOVERSION} SOVERSION ${TILEC_SOVERSION}
  LIBRARY_OUTPUT_DIRECTORY ${package} SKIP_BUILD_RPATH TRUE)
foreach(tool tilec_tool tilerun)
  get_target_property(sources ${tool} SOURCES)
  get_target_property(name ${tool} OUTPUT_NAME)
  if(NOT name)
    set(name ${tool})
  endif()
  add_executable(${tool}_small EXCLUDE_FROM_ALL ${sources})
  target_compile_definitions(${tool}_small PRIVATE _GNU_SOURCE)
  target_link_libraries(${tool}_small PRIVATE tilec_small m)
  target_link_options(${tool}_small PRIVATE -Wl,-s)
  set_target_properties(${tool}_small PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${package}/bin
    BUILD_WITH_INSTALL_RPATH TRUE INSTALL_RPATH "$ORIGIN/..")
endforeach()
add_custom_target(wheel
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/backend.py ${package} $<TARGET_FILE:tilec_python> ${CMAKE_BINARY_DIR}/wheel
  DEPENDS tilec_small tilec_tool_small tilerun_small tilec_python VERBATIM)
