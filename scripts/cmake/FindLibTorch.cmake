# SPDX-License-Identifier: Apache-2.0
# The CPU half of the LibTorch that is inside a PyTorch wheel or a libtorch archive: LibTorch::cpu and LibTorch_VERSION;
# where it has CUDA's half, LibTorch::cuda. Torch's own CMake package is not used, since that of a CUDA wheel requires
# nvcc.
#
# Searched in this order; the first folder that contains it is used:
#   LibTorch_ROOT (CMake or environment)      the `torch` folder
#   Torch_DIR, CMAKE_PREFIX_PATH              as for find_package(Torch)
#   LibTorch_HINTS                            of an installed libacc: the one that it was built for
#   the torch of the active python3           found without importing it
#   ${XDG_CACHE_HOME:-~/.cache}/acc/libtorch-2.11.0/torch    what scripts/quickstart installs

# Where it was given on the command line as a relative path, CMake makes it absolute.
if(DEFINED CACHE{LibTorch_ROOT})
  set(LibTorch_ROOT "" CACHE PATH "The `torch` folder to use")
endif()
set(_libtorch_candidates ${LibTorch_ROOT} $ENV{LibTorch_ROOT})
if(_libtorch_candidates)
  list(GET _libtorch_candidates 0 _dir)
  if(NOT EXISTS ${_dir}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "LibTorch_ROOT: ${_dir} holds no lib/libtorch_cpu.so; name the `torch` folder of a site-packages")
  endif()
endif()
foreach(_dir IN ITEMS ${Torch_DIR} ${CMAKE_PREFIX_PATH})
  list(APPEND _libtorch_candidates ${_dir})
  # <torch>/share/cmake and <torch>/share/cmake/Torch are what torch.utils.cmake_prefix_path users pass.
  foreach(_up IN ITEMS ../.. ../../..)
    get_filename_component(_parent ${_dir}/${_up} ABSOLUTE)
    list(APPEND _libtorch_candidates ${_parent})
  endforeach()
endforeach()

list(APPEND _libtorch_candidates ${LibTorch_HINTS})
find_program(ACC_PYTHON NAMES python3 python DOC "The python whose torch is used when no other LibTorch is given")
if(ACC_PYTHON)
  execute_process(
    COMMAND ${ACC_PYTHON} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE _libtorch_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND _libtorch_candidates ${_libtorch_of_python})
endif()
if(DEFINED ENV{XDG_CACHE_HOME})
  list(APPEND _libtorch_candidates $ENV{XDG_CACHE_HOME}/acc/libtorch-2.11.0/torch)
else()
  list(APPEND _libtorch_candidates $ENV{HOME}/.cache/acc/libtorch-2.11.0/torch)
endif()

set(_libtorch_folder "")
foreach(_dir IN LISTS _libtorch_candidates)
  if(EXISTS ${_dir}/include/ATen/core/Tensor.h AND EXISTS ${_dir}/lib/libtorch_cpu.so AND EXISTS ${_dir}/lib/libc10.so)
    set(_libtorch_folder ${_dir})
    break()
  endif()
endforeach()

if(_libtorch_folder)
  # The version moved to another header in 2.9.
  set(_libtorch_header ${_libtorch_folder}/include/torch/headeronly/version.h)
  if(NOT EXISTS ${_libtorch_header})
    set(_libtorch_header ${_libtorch_folder}/include/torch/csrc/api/include/torch/version.h)
  endif()
  set(_libtorch_numbers "")
  foreach(_part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS ${_libtorch_header} _line REGEX "define TORCH_VERSION_${_part} ")
    string(REGEX REPLACE ".*${_part} ([0-9]+).*" "\\1" _number "${_line}")
    list(APPEND _libtorch_numbers ${_number})
  endforeach()
  list(JOIN _libtorch_numbers . LibTorch_VERSION)
endif()

include(FindPackageHandleStandardArgs)
list(JOIN _libtorch_candidates "\n  " _libtorch_tried)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS _libtorch_folder VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "no folder with include/ATen/core/Tensor.h and lib/libtorch_cpu.so among\n  ${_libtorch_tried}\nRun scripts/quickstart, which installs the least of it, or name yours with -DLibTorch_ROOT=<python's site-packages>/torch, or build the launcher alone with -DACC_RUNTIME=OFF.\n")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(LibTorch_LIBRARY_DIR ${_libtorch_folder}/lib)
  add_library(LibTorch::c10 SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::c10 PROPERTIES
    IMPORTED_LOCATION ${_libtorch_folder}/lib/libc10.so
    INTERFACE_INCLUDE_DIRECTORIES "${_libtorch_folder}/include;${_libtorch_folder}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
  add_library(LibTorch::cpu SHARED IMPORTED GLOBAL)
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION ${_libtorch_folder}/lib/libtorch_cpu.so
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
  if(EXISTS ${_libtorch_folder}/lib/libtorch_cuda.so AND EXISTS ${_libtorch_folder}/lib/libc10_cuda.so)
    add_library(LibTorch::cuda SHARED IMPORTED GLOBAL)
    set_target_properties(LibTorch::cuda PROPERTIES
      IMPORTED_LOCATION ${_libtorch_folder}/lib/libtorch_cuda.so
      INTERFACE_LINK_LIBRARIES "${_libtorch_folder}/lib/libc10_cuda.so;LibTorch::cpu")
  endif()
endif()
