# SPDX-License-Identifier: Apache-2.0
# cmake -DSCRIPTS=<scripts/cmake> -DWORK=<folder> -P: what FindCudaHeaders finds beside a fake torch.

set(failed FALSE)
set(ENV{CUDA_HOME})
set(ENV{CUDA_PATH})
set(ENV{CUDAToolkit_ROOT})
set(CudaHeaders_NO_SYSTEM_LOCATIONS TRUE)
set(cuda_headers cuda_runtime_api.h cublas_v2.h cublasLt.h cusparse.h cusolverDn.h cuda_fp16.h)

# A new torch, as PyPI's wheel for CUDA 13.0 and NCCL 2.28 leaves it.
macro(begin what)
  set(what "${what}")
  file(REMOVE_RECURSE ${WORK})
  set(LibTorch_LIBRARY_DIR ${WORK}/torch/lib)
  file(WRITE ${WORK}/torch/lib/libtorch_cuda.so "")
  file(WRITE ${WORK}/torch/version.py "cuda: Optional[str] = '13.0'\n")
  file(WRITE ${WORK}/torch-2.11.0.dist-info/METADATA
    "Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == \"Linux\"\n")
  cuda(${WORK}/nvidia/cu13/include 13000)
  nccl(${WORK}/nvidia/nccl/include 28)
  set(CUDAToolkit_ROOT)
endmacro()

function(cuda folder version)
  file(WRITE ${folder}/cuda.h "#define CUDA_VERSION ${version}\n")
  foreach(header IN LISTS cuda_headers)
    file(WRITE ${folder}/${header} "")
  endforeach()
endfunction()

function(nccl folder minor)
  file(WRITE ${folder}/nccl.h "#define NCCL_MAJOR 2\n#define NCCL_MINOR ${minor}\n")
endfunction()

macro(expect_missing pattern)
  include(${SCRIPTS}/FindCudaHeaders.cmake)
  if(CudaHeaders_FOUND OR NOT CudaHeaders_MISSING MATCHES "${pattern}")
    message("FAILED: ${what}: '${CudaHeaders_MISSING}' has no '${pattern}'")
    set(failed TRUE)
  endif()
endmacro()

macro(expect_found)
  include(${SCRIPTS}/FindCudaHeaders.cmake)
  if(NOT CudaHeaders_FOUND OR NOT CudaHeaders_INCLUDE_DIRS STREQUAL "${ARGN}")
    message("FAILED: ${what}: '${CudaHeaders_INCLUDE_DIRS}' is not '${ARGN}' (${CudaHeaders_MISSING})")
    set(failed TRUE)
  endif()
endmacro()

macro(touch)
  foreach(file IN ITEMS ${ARGN})
    file(WRITE ${file} "")
  endforeach()
endmacro()

begin("torch's wheels alone lack two headers")
expect_missing("^missing the headers crt/host_defines.h, nv/target: .*nvidia-cuda-crt nvidia-cuda-cccl")

begin("with them the wheels are enough")
touch(${WORK}/nvidia/cu13/include/crt/host_defines.h ${WORK}/nvidia/cu13/include/nv/target)
expect_found(${WORK}/nvidia/cu13/include ${WORK}/nvidia/nccl/include)

begin("a toolkit that is named comes first, NCCL from beside torch")
cuda(${WORK}/toolkit/include 13010)
touch(${WORK}/toolkit/include/crt/host_defines.h ${WORK}/toolkit/include/nv/target)
set(CUDAToolkit_ROOT ${WORK}/toolkit)
expect_found(${WORK}/toolkit/include ${WORK}/nvidia/nccl/include)

begin("one of another CUDA is refused")
cuda(${WORK}/toolkit/include 12080)
touch(${WORK}/toolkit/include/crt/host_defines.h ${WORK}/toolkit/include/nv/target)
set(CUDAToolkit_ROOT ${WORK}/toolkit)
expect_missing("is made with CUDA 13, the headers in .* are those of CUDA 12")

begin("another NCCL is refused")
touch(${WORK}/nvidia/cu13/include/crt/host_defines.h ${WORK}/nvidia/cu13/include/nv/target)
nccl(${WORK}/nvidia/nccl/include 27)
expect_missing("is made with NCCL 2.28, .*nccl.h is of 2.27")

begin("no NCCL is said")
touch(${WORK}/nvidia/cu13/include/crt/host_defines.h ${WORK}/nvidia/cu13/include/nv/target)
file(REMOVE_RECURSE ${WORK}/nvidia/nccl)
expect_missing("^missing the headers nccl.h")

begin("a LibTorch for the CPU is said")
file(REMOVE ${WORK}/torch/lib/libtorch_cuda.so)
expect_missing("has no libtorch_cuda.so, it is one for the CPU")

file(REMOVE_RECURSE ${WORK})
if(failed)
  message(FATAL_ERROR "see above")
endif()
