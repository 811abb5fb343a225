# cmake --install: the program, the library with its header, CMake's and pkg-config's way to it, and the Python package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS clustergcn RUNTIME COMPONENT program)
install(TARGETS library EXPORT clustergcn
  LIBRARY COMPONENT library NAMELINK_COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/clustergcn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/clustergcn)
install(EXPORT clustergcn FILE clustergcn-config.cmake NAMESPACE clustergcn:: DESTINATION ${config_folder} COMPONENT development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/clustergcn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/clustergcn-config-version.cmake DESTINATION ${config_folder} COMPONENT development)
configure_file(cmake/clustergcn.pc.in clustergcn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/clustergcn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
