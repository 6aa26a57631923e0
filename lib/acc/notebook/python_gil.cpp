// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/python_gil.hpp"

#include <dlfcn.h>

namespace acc::detail {
namespace {

// By name: this library is not linked to Python.
template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

WithoutGil::WithoutGil() {
  auto* is_held = find<int()>("PyGILState_Check");
  auto* save = find<void*()>("PyEval_SaveThread");
  restore_ = find<void(void*)>("PyEval_RestoreThread");
  if (is_held != nullptr && save != nullptr && restore_ != nullptr && is_held() != 0) thread_state_ = save();
}

WithoutGil::~WithoutGil() {
  if (thread_state_ != nullptr) restore_(thread_state_);
}

}  // namespace acc::detail
