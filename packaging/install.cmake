# What `cmake --install` puts where, in components that can be had alone (`--component`):
#   runtime    libtilert, shared and as an archive, its headers, licences
#   simulator  libtilesim, which libtilert opens when a device asks for it, or has inside where both are archives
#   compiler   libtilec, with compiler, JIT, runtime and simulator inside, its headers; as an archive: compiler_static (archive.cmake)
#   tools      tilec and tilerun, their manual pages, completions for shells
#   documents  the manual and the examples
# Each library has a file for pkg-config and a part of the CMake package. Nothing installed says where: the tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(TILEC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tilec)
set(here ${CMAKE_CURRENT_LIST_DIR})
file(RELATIVE_PATH bin_to_lib /x/${CMAKE_INSTALL_BINDIR} /x/${CMAKE_INSTALL_LIBDIR})

# Without debug sections: LLVM's are in a form that not every tool reads (valgrind stops at them), and they are half of the library.
# Names of functions, tables for unwinding and the build id stay.
function(strip_installed target folder component)
  if(CMAKE_STRIP)
    install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-debug
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_FILE_NAME:${target}>\")" COMPONENT ${component})
  endif()
endfunction()

# component(NAME LIBRARY HEADER...): one library with what programs need to use it.
function(component name library)
  file(RELATIVE_PATH TILEC_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
  configure_file(${here}/${library}.pc.in ${CMAKE_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${name})
  if(ARGN)
    install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilec COMPONENT ${name})
    set_property(GLOBAL APPEND PROPERTY TILEC_INSTALLED_HEADERS ${ARGN})
  endif()
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${library} EXPORT tilec-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
  strip_installed(${library} ${CMAKE_INSTALL_LIBDIR} ${name})
  if(TARGET ${library}_static)
    set_target_properties(${library}_static PROPERTIES EXPORT_NAME ${name}_static)
    target_include_directories(${library}_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    install(TARGETS ${library}_static EXPORT tilec-${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name})
    strip_installed(${library}_static ${CMAKE_INSTALL_LIBDIR} ${name})
  endif()
  install(EXPORT tilec-${name} NAMESPACE tilec:: FILE tilec-${name}.cmake DESTINATION ${TILEC_CMAKE_DIR} COMPONENT ${name})
endfunction()

component(runtime tilert runtime/tilert.h runtime/status.h runtime/aot.h runtime/tilert.hpp runtime/args.h runtime/manifest.h runtime/version.h)
component(simulator tilesim)
configure_package_config_file(${here}/tilec-config.cmake.in ${CMAKE_BINARY_DIR}/tilec-config.cmake INSTALL_DESTINATION ${TILEC_CMAKE_DIR})
# As the names of the libraries: before 1.0 a minor version is not taken for another.
set(compatibility SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
endif()
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tilec-config-version.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_BINARY_DIR}/tilec-config.cmake ${CMAKE_BINARY_DIR}/tilec-config-version.cmake ${here}/kernels.cmake
  DESTINATION ${TILEC_CMAKE_DIR} COMPONENT runtime)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
# cmake --build BUILD --target uninstall: what the last `cmake --install BUILD` has put anywhere, and the folders that are empty then.
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D BUILD=${CMAKE_BINARY_DIR} -P ${here}/uninstall.cmake)
if(NOT TILEC_COMPILER)
  return()
endif()

component(compiler tilec driver/tilec.h driver/jit.h)
foreach(tool tilec_tool tilerun)
  set_target_properties(${tool} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS ${tool} EXPORT tilec-tools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  strip_installed(${tool} ${CMAKE_INSTALL_BINDIR} tools)
endforeach()
set_target_properties(tilec_tool PROPERTIES EXPORT_NAME tilec)
install(EXPORT tilec-tools NAMESPACE tilec:: FILE tilec-tools.cmake DESTINATION ${TILEC_CMAKE_DIR} COMPONENT tools)

install(FILES ${here}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT compiler)   # of what is in libtilec; the compiler comes with the runtime
install(FILES ${here}/man/tilec.1 ${here}/man/tilerun.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
install(FILES ${here}/completions/tilec.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tilec COMPONENT tools)
install(FILES ${here}/completions/tilerun.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tilerun COMPONENT tools)
install(FILES ${here}/completions/_tilec ${here}/completions/_tilerun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tools)
install(FILES ${here}/completions/tilec.fish ${here}/completions/tilerun.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
  COMPONENT tools)

install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documents)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT documents FILES_MATCHING PATTERN "*.md" PATTERN "plan.md" EXCLUDE)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT documents
  FILES_MATCHING PATTERN "*.tile" PATTERN "*.md" PATTERN "*.[ch]" PATTERN "*.cpp" PATTERN "*.def" PATTERN "sources.cmake" PATTERN "Makefile" PATTERN "CMakeLists.txt" PATTERN "meson.build"
  PATTERN "__pycache__" EXCLUDE)
install(CODE "execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${here}/documents.py\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT documents)
