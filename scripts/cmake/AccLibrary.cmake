# SPDX-License-Identifier: Apache-2.0
# Functions and options for all targets of acc: warnings, sanitizers, libraries, programs.

find_program(ACC_CCACHE ccache)
if(ACC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Checkouts in different folders share what was compiled; precompiled headers need the two exceptions.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true
      CCACHE_SLOPPINESS=pch_defines,time_macros ${ACC_CCACHE})
endif()

add_library(acc_options INTERFACE)
target_compile_features(acc_options INTERFACE cxx_std_20)
# GCC 12 reports false overlaps when it inlines std::string (GCC bug 105651). Of conversions Clang is to report what GCC does.
target_compile_options(acc_options INTERFACE -Wall -Wextra -Wconversion -Wshadow
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
                       $<$<BOOL:${ACC_WARNINGS_AS_ERRORS}>:-Werror>)
# Beyond 128 MiB GCC would collect garbage again and again: an eighth of its time, for a sixth of its memory.
target_compile_options(acc_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=4194304>)
if(ACC_SANITIZE)
  target_compile_options(acc_options INTERFACE -fsanitize=${ACC_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(acc_options INTERFACE -fsanitize=${ACC_SANITIZE})
  if(ACC_SANITIZE STREQUAL "thread")
    target_compile_options(acc_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)  # GCC warns of Asio's fences
  else()
    # With the address sanitizer GCC 12 falsely reports std::regex as uninitialized (GCC bug 105562). The check of virtual
    # calls opens a pipe to look at an object, and reports what it cannot see: where files are limited, each.
    target_compile_options(acc_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fno-sanitize=vptr)
  endif()
endif()

# Hardening: position-independent executables, symbols bound and their tables read-only before main, stack protection,
# and _FORTIFY_SOURCE, which requires optimized code. Sanitizers do such checks themselves.
if(NOT ACC_SANITIZE)
  target_compile_options(acc_options INTERFACE -fstack-protector-strong
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
  target_link_options(acc_options INTERFACE LINKER:-z,relro,-z,now)
endif()

# acc_unity(TARGET [GROUP]): where ACC_UNITY asks for it, the target's sources are compiled together, a dozen at a time, or
# with GROUP those that have the same property UNITY_GROUP.
function(acc_unity target)
  if(NOT ACC_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  if(ARGN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  endif()
  # Of types in anonymous namespaces, which GCC takes for those of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# acc_library(NAME [SHARED|OBJECT] [SEPARATE] SOURCES a b DEPENDS acc::base PRIVATE_DEPENDS fmt::fmt)
#
# The sources and all headers of a folder as target acc::NAME. SOURCES are file names without suffix. Each header must
# compile alone (the target all_verify_interface_header_sets checks it). SHARED makes a shared library, which is installed,
# with those of its headers that programs include (AccInstall); OBJECT makes objects for one. SEPARATE: the caller says
# which sources are compiled together (acc_unity), for programs that must not link all of them.
function(acc_library name)
  cmake_parse_arguments(arg "SHARED;OBJECT;SEPARATE" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(type STATIC)
  if(arg_SHARED)
    set(type SHARED)
  elseif(arg_OBJECT)
    set(type OBJECT)
  endif()
  list(TRANSFORM arg_SOURCES APPEND .cpp)
  # Not CONFIGURE_DEPENDS, which would look for new ones in each build of a project that contains acc.
  file(GLOB_RECURSE headers_of_folder ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)
  add_library(acc_${name} ${type} ${arg_SOURCES})
  add_library(acc::${name} ALIAS acc_${name})
  set(headers acc_${name})
  set(visibility PUBLIC)
  if(arg_SHARED)
    # With the header set in the library itself, CMake would install all headers with it.
    set(headers acc_${name}_headers)
    set(visibility INTERFACE)
    add_library(${headers} INTERFACE)
    target_link_libraries(${headers} INTERFACE acc_${name})
    target_include_directories(acc_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>)
  endif()
  target_sources(${headers} ${visibility}
                 FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${headers_of_folder})
  set_target_properties(${headers} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(acc_${name} PUBLIC cxx_std_20)
  target_link_libraries(acc_${name} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:acc_options> ${arg_PRIVATE_DEPENDS})
  set_target_properties(acc_${name} PROPERTIES EXPORT_NAME ${name})
  if(NOT arg_SHARED AND NOT arg_SEPARATE)
    acc_unity(acc_${name})
  endif()
endfunction()

# acc_executable(NAME SOURCES a.cpp DEPENDS acc::launch): a program in build/<preset>/bin.
function(acc_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE acc_options ${arg_DEPENDS})
endfunction()
