# Install rules: headers, libraries with the three names of the tensor library, the tool, find_package(arenite) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(GLOB public_headers ${PROJECT_SOURCE_DIR}/include/*.h)
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(arenite_targets ggml)
if(TARGET llama)
    list(APPEND arenite_targets llama)
endif()
install(TARGETS ${arenite_targets} EXPORT arenite
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(BUILD_SHARED_LIBS)
    foreach(name base cpu)
        install(FILES ${PROJECT_BINARY_DIR}/lib/libggml-${name}.so.0 ${PROJECT_BINARY_DIR}/lib/libggml-${name}.so
            DESTINATION ${CMAKE_INSTALL_LIBDIR})
    endforeach()
endif()
if(TARGET ggml-arenite)
    install(TARGETS ggml-arenite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET arenite)
    file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
    set_target_properties(arenite PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
    install(TARGETS arenite RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT arenite NAMESPACE arenite:: FILE arenite-targets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/arenite)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/arenite-config.cmake.in ${PROJECT_BINARY_DIR}/arenite-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/arenite)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/arenite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/arenite-config.cmake ${PROJECT_BINARY_DIR}/arenite-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/arenite)

file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")      # an installed tree may be moved
foreach(name ggml llama)
    set(requires "")
    if(name STREQUAL llama)
        set(requires ggml)
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
