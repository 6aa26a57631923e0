# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: installs the programs, libacc.so, its headers, documentation and the CMake package. Its COMPONENTS
# runtime provides acc::runtime and requires only LibTorch; COMPONENTS notebook provides acc::notebook, and needs the
# runtime. The launcher's layers are not installed.

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/acc)

# Installed as bin/acc-torchrun too: under that name `acc` follows torchrun's rules alone. The component `launcher` is what
# packages of the launcher alone have (AccPackage).
if(TARGET acc)
  file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  file(CREATE_LINK acc ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/acc-torchrun SYMBOLIC)
  install(TARGETS acc COMPONENT launcher)
  install(FILES ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/acc-torchrun TYPE BIN COMPONENT launcher)
endif()

# Programs find libacc.so by its place in the prefix, and LibTorch in the folder with which they were built.
if(TARGET LibTorch::cpu)
  get_target_property(libtorch LibTorch::cpu LOCATION)
  cmake_path(GET libtorch PARENT_PATH libtorch_folder)
  install(CODE "set(libtorch_folder \"${libtorch_folder}\")\ninclude(\"${CMAKE_CURRENT_LIST_DIR}/warn_of_closed_libtorch.cmake\")")
endif()

# `acc` expects the self-test in its own folder; the examples expect their data in share/acc.
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
  install(TARGETS ${trainings} OPTIONAL)
endif()

# Programs include the headers directly in lib/acc: acc/acc.hpp, or acc/data.hpp and the like. The headers that those
# include are installed below acc/detail, and no others.
function(acc_add_included header)
  file(STRINGS ${CMAKE_SOURCE_DIR}/lib/${header} lines REGEX "^#include \"acc/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" included "${line}")
    get_property(known GLOBAL PROPERTY acc_included)
    if(NOT included IN_LIST known)
      set_property(GLOBAL APPEND PROPERTY acc_included ${included})
      acc_add_included(${included})
    endif()
  endforeach()
endfunction()

if(TARGET acc_runtime)
  set_target_properties(acc_runtime PROPERTIES INSTALL_RPATH "${libtorch_folder}")
  file(GLOB public_headers RELATIVE ${CMAKE_SOURCE_DIR}/lib CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/acc/*.hpp)
  foreach(header IN LISTS public_headers)
    acc_add_included(${header})
    install(FILES ${CMAKE_SOURCE_DIR}/lib/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/acc)
  endforeach()
  get_property(details GLOBAL PROPERTY acc_included)
  list(REMOVE_ITEM details ${public_headers})
  foreach(header IN LISTS details)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${CMAKE_SOURCE_DIR}/lib/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/acc/detail/${folder})
  endforeach()
  target_include_directories(acc_runtime INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/acc/detail>)
  install(TARGETS acc_runtime EXPORT acc-runtime)
  set_target_properties(acc_notebook PROPERTIES INSTALL_RPATH "$ORIGIN;${libtorch_folder}")
  # What was not built is left out: scripts/quickstart builds the launcher, the runtime and an example.
  install(TARGETS acc_notebook EXPORT acc-notebook OPTIONAL)
  install(EXPORT acc-notebook NAMESPACE acc:: DESTINATION ${package_folder})
  if(TARGET acc_runtime_cuda)
    install(TARGETS acc_runtime_cuda OPTIONAL)
  endif()
  install(EXPORT acc-runtime NAMESPACE acc:: DESTINATION ${package_folder})
  install(FILES ${CMAKE_SOURCE_DIR}/scripts/cmake/FindLibTorch.cmake DESTINATION ${package_folder})
  install(FILES ${CMAKE_SOURCE_DIR}/lib/acc/runtime/README.md RENAME runtime.md TYPE DOC)
endif()
# The pages in their places, so that their links hold.
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE TYPE DOC COMPONENT launcher)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/apps/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}/apps COMPONENT launcher
  FILES_MATCHING PATTERN *.md PATTERN *.svg)
install(FILES ${CMAKE_SOURCE_DIR}/apps/examples/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/apps/examples
        COMPONENT launcher)

set(libtorch_of_acc "")
if(libtorch_folder)
  cmake_path(GET libtorch_folder PARENT_PATH libtorch_of_acc)
endif()
configure_package_config_file(${CMAKE_SOURCE_DIR}/scripts/cmake/acc-config.cmake.in acc-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(acc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/acc-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/acc-config-version.cmake
  DESTINATION ${package_folder})

if(TARGET acc)
  include(AccPackage)
endif()
