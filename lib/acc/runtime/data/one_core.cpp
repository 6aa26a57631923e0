// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/one_core.hpp"

#include <ATen/Parallel.h>

// Of the OpenMP runtime that LibTorch brings along. Linking one here could bring a second one in.
extern "C" __attribute__((weak)) void omp_set_num_threads(int threads);

namespace acc {
namespace {

// at::set_num_threads is for the whole process, OpenMP's is for the calling thread.
void use_cores(int count) {
  if (omp_set_num_threads != nullptr) omp_set_num_threads(count);
}

}  // namespace

// LibTorch sets OpenMP's number at a thread's first use: that comes before ours.
OneCore::OneCore() : before_(at::get_num_threads()) {
  use_cores(1);
}

OneCore::~OneCore() {
  use_cores(before_);
}

}  // namespace acc
