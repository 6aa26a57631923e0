// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a driver. Its one function tells whether CUDA is initialized.
#include <cstdlib>

// The answer of the driver that ACC_FAKE_CUDA_ANSWER names; otherwise CUDA_ERROR_NOT_INITIALIZED.
extern "C" int cuDeviceGetCount(int* count) {
  const char* answer = std::getenv("ACC_FAKE_CUDA_ANSWER");
  *count = 1;
  return answer != nullptr ? std::atoi(answer) : 3;
}
