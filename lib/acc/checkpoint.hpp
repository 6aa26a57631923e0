// SPDX-License-Identifier: Apache-2.0
// Reads and writes weights and checkpoints, including those of Python.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"
#include "acc/runtime/checkpoint/materialize.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/model_weights.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/save_options.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"
#include "acc/runtime/tensors/meta_device.hpp"
