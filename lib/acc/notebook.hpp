// SPDX-License-Identifier: Apache-2.0
// Training on several processes from a notebook or a running program. Needs COMPONENTS notebook
// (libacc_notebook.so) beside the runtime; not part of acc/acc.hpp.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/notebook/notebook_launcher.hpp"
#include "acc/notebook/result_text.hpp"
#include "acc/notebook/write_basic_config.hpp"
