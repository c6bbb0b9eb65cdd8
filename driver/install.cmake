# What `cmake --install` puts where: two libraries, the tools, headers under include/tilec, pkg-config files.
include(GNUInstallDirs)
set(TILEC_ROOT ${CMAKE_CURRENT_LIST_DIR}/..)
# pkg-config files find the prefix from where they lie, so that an installed tree can be moved.
file(RELATIVE_PATH TILEC_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
foreach(name runtime/tilert driver/tilec)
  get_filename_component(base ${name} NAME)
  configure_file(${TILEC_ROOT}/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${base}.pc @ONLY)
  if(TARGET ${base})
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${base}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
install(FILES ${TILEC_ROOT}/runtime/tilert.h ${TILEC_ROOT}/runtime/manifest.h
              ${TILEC_ROOT}/driver/tilec.h ${TILEC_ROOT}/driver/jit.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilec)
# Without debug sections: LLVM's are in a form that not every tool reads (valgrind stops at them), and they are half of the library.
# Names of functions and the build id stay.
foreach(target tilert tilec tilec_tool tilerun)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    get_target_property(kind ${target} TYPE)
    set(folder ${CMAKE_INSTALL_BINDIR})
    if(kind STREQUAL SHARED_LIBRARY)
      set(folder ${CMAKE_INSTALL_LIBDIR})
    endif()
    if(CMAKE_STRIP)
      install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-debug
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}/$<TARGET_FILE_NAME:${target}>\")")
    endif()
  endif()
endforeach()
