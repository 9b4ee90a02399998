# What `cmake --install` puts where: the headers, libgk.so, gkrun, and what find_package(gk) and pkg-config read.
# A program builds against the installed tree alone; see examples/embed.
include(CMakePackageConfigHelpers)

install(TARGETS gk EXPORT gkTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/gk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT gkTargets NAMESPACE gk:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gk COMPONENT library)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/gkConfig.cmake.in ${CMAKE_BINARY_DIR}/gkConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gk)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gkConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/gkConfig.cmake ${CMAKE_BINARY_DIR}/gkConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/gk COMPONENT library)
file(RELATIVE_PATH gk_pc_to_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${CMAKE_SOURCE_DIR}/cmake/gk.pc.in ${CMAKE_BINARY_DIR}/gk.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/gk.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
