# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the programs, libacc.so, the headers and the CMake package. find_package(acc) gives the launcher's
# layers as acc::base, acc::config, ...; COMPONENTS runtime gives acc::runtime and looks for LibTorch.

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/acc)

# Installed as bin/acc-torchrun too: under that name `acc` follows torchrun's rules alone.
if(TARGET acc)
  file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  file(CREATE_LINK acc ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/acc-torchrun SYMBOLIC)
  install(TARGETS acc)
  install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/acc-torchrun TYPE BIN)
endif()

# Programs and libacc.so find each other by their place in the prefix, and the LibTorch that they were built with.
if(TARGET LibTorch::cpu)
  get_target_property(libtorch LibTorch::cpu LOCATION)
  cmake_path(GET libtorch PARENT_PATH libtorch_folder)
endif()

# `acc` looks for the self-test in its own folder, the examples for their data in share/acc.
set(trainings "")
if(ACC_RUNTIME)
  set(trainings mnist)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/apps/examples/mnist/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/acc/mnist)
endif()
if(TARGET acc-selftest)
  list(APPEND trainings acc-selftest)
endif()
if(trainings)
  set_target_properties(${trainings} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${libtorch_folder}")
  install(TARGETS ${trainings})
endif()

# A layer that links libraries which the build downloaded is of no use to others: they have no such libraries.
set(launcher "")
if(NOT ACC_DOWNLOADED_PACKAGES)
  foreach(layer IN ITEMS acc_base acc_config acc_plan acc_weights acc_store acc_control acc_rendezvous acc_launch)
    if(TARGET ${layer})
      list(APPEND launcher ${layer})
    endif()
  endforeach()
endif()
if(launcher)
  install(TARGETS ${launcher} EXPORT acc-launcher FILE_SET HEADERS)
  install(EXPORT acc-launcher NAMESPACE acc:: DESTINATION ${package_folder})
endif()

if(TARGET acc_runtime)
  set_target_properties(acc_runtime PROPERTIES INSTALL_RPATH "${libtorch_folder}")
  install(TARGETS acc_runtime EXPORT acc-runtime FILE_SET HEADERS FILE_SET with_json)
  if(TARGET acc_runtime_cuda)
    install(TARGETS acc_runtime_cuda)
  endif()
  install(EXPORT acc-runtime NAMESPACE acc:: DESTINATION ${package_folder})
  if(NOT launcher)
    install(TARGETS acc_base FILE_SET HEADERS)  # the runtime's headers include them
  endif()
  install(FILES ${CMAKE_SOURCE_DIR}/scripts/cmake/FindLibTorch.cmake DESTINATION ${package_folder})
endif()

configure_package_config_file(${CMAKE_SOURCE_DIR}/scripts/cmake/acc-config.cmake.in acc-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(acc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/acc-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/acc-config-version.cmake
  DESTINATION ${package_folder})
