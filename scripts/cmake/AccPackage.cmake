# SPDX-License-Identifier: Apache-2.0
# What a package of the launcher alone has: its bill of materials, the licences of all that is linked into it, and the rules
# by which cpack makes a .deb and a tar.gz that works wherever it is unpacked. The wheel has the first two as well.
# scripts/package/release makes packages of a program that was compiled for old systems.

set(ACC_PACKAGE_CONTACT "acc maintainers <maintainers@acc.invalid>" CACHE STRING "Whom the packages name as their maintainer")
mark_as_advanced(ACC_PACKAGE_CONTACT)

# The C++ runtime is linked into the program, too.
if(ACC_ZIG)
  execute_process(COMMAND ${ACC_ZIG} version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  cmake_path(GET ACC_ZIG PARENT_PATH zig_folder)
  acc_has_part_of(zig ${version} MIT "" "" ${zig_folder})
  acc_has_part_of(libc++ ${CMAKE_CXX_COMPILER_VERSION} "Apache-2.0 WITH LLVM-exception" "" "" ${zig_folder}/lib/libcxx)
  set(runtime zig libc++)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  acc_has_part_of(libstdc++ ${CMAKE_CXX_COMPILER_VERSION} "GPL-3.0-or-later WITH GCC-exception-3.1")
  set(runtime libstdc++)
endif()

# The bill of materials, in the form of CycloneDX.
function(acc_write_bill file)
  set(components "[]")
  set(names "[]")
  set(number 0)
  foreach(name IN LISTS ARGN)
    foreach(fact IN ITEMS version license url sha256)
      get_property(${fact} GLOBAL PROPERTY acc_part_${name}_${fact})
    endforeach()
    string(REPLACE "+" "%2B" encoded ${name})
    set(reference "pkg:generic/${encoded}@${version}")
    set(licence "{\"license\": {\"id\": \"${license}\"}}")
    if(license MATCHES " ")
      set(licence "{\"expression\": \"${license}\"}")
    endif()
    set(component "{\"type\": \"library\", \"bom-ref\": \"${reference}\", \"name\": \"${name}\", \"version\": \"${version}\",
                    \"licenses\": [${licence}], \"purl\": \"${reference}\"}")
    if(url)
      string(JSON component SET "${component}" externalReferences "[{\"type\": \"distribution\", \"url\": \"${url}\",
             \"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"${sha256}\"}]}]")
    endif()
    string(JSON components SET "${components}" ${number} "${component}")
    string(JSON names SET "${names}" ${number} "\"${reference}\"")
    math(EXPR number "${number} + 1")
  endforeach()
  set(reference "pkg:generic/acc@${PROJECT_VERSION}")
  set(bill "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\", \"version\": 1, \"metadata\": {\"component\": {
             \"type\": \"application\", \"bom-ref\": \"${reference}\", \"name\": \"acc\", \"version\": \"${PROJECT_VERSION}\",
             \"description\": \"${PROJECT_DESCRIPTION}\", \"licenses\": [{\"license\": {\"id\": \"Apache-2.0\"}}], \"purl\": \"${reference}\"}},
             \"components\": ${components}, \"dependencies\": [{\"ref\": \"${reference}\", \"dependsOn\": ${names}}]}")
  string(JSON bill SET "${bill}" version 1)  # also brings it into the usual form
  file(WRITE ${file} "${bill}\n")
endfunction()

set(bill ${CMAKE_BINARY_DIR}/acc.cdx.json)
acc_write_bill(${bill} ${ACC_LAUNCHER_PARTS} ${runtime})
install(FILES ${bill} TYPE DOC COMPONENT launcher)
if(SKBUILD)
  install(FILES ${bill} DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

# Licences are with the sources; those of a system's libraries are where the system has them.
foreach(name IN LISTS ACC_LAUNCHER_PARTS runtime)
  get_property(folder GLOBAL PROPERTY acc_part_${name}_folder)
  if(NOT folder)
    continue()
  endif()
  file(GLOB licences ${folder}/LICENSE ${folder}/LICENSE[._]* ${folder}/COPYING*)
  if(NOT licences)
    message(FATAL_ERROR "${folder}, of which acc has a part, has no licence")
  endif()
  install(FILES ${licences} DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses/${name} COMPONENT launcher)
  if(SKBUILD)
    install(FILES ${licences} DESTINATION ${SKBUILD_METADATA_DIR}/licenses/${name} COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
endforeach()

# The wheel has the program where pip puts programs. There are no links in wheels; and beside the package lies what Python
# reads when it starts.
if(SKBUILD)
  install(PROGRAMS $<TARGET_FILE:acc> ${CMAKE_SOURCE_DIR}/scripts/package/acc-torchrun
          DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_SOURCE_DIR}/scripts/package/acc_replace.pth ${CMAKE_SOURCE_DIR}/scripts/package/_acc_replace.py
          DESTINATION ${SKBUILD_PLATLIB_DIR} COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};acc;launcher;/")
if(NOT ACC_ZIG)  # which leaves no symbols
  set(CPACK_STRIP_FILES ON)
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_NAME acc)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME acc-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CONTACT "${ACC_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher for distributed training")
set(CPACK_PACKAGE_DESCRIPTION "Starts the workers of a training with PyTorch on one machine or many, in
place of torchrun and accelerate launch, for Python scripts and C++ programs
alike. It watches and restarts them, leaves none behind, and says which failed
first, where and why.
.
It needs neither Python nor PyTorch; the programs that it starts bring theirs.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
include(CPack)
