// SPDX-License-Identifier: Apache-2.0
// Files of weights and of whole trainings, those of Python among them.
#pragma once

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/model_file.hpp"
#include "acc/runtime/checkpoint/pt_reader.hpp"
#include "acc/runtime/checkpoint/pt_writer.hpp"
#include "acc/runtime/checkpoint/random_states.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"
#include "acc/runtime/checkpoint/weights_folder.hpp"
