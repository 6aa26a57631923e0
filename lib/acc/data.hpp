// SPDX-License-Identifier: Apache-2.0
// Data sets, samplers and loaders that share samples out among processes.
#pragma once

#include "acc/runtime/data/cifar_file.hpp"
#include "acc/runtime/data/collate.hpp"
#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/data/idx_file.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "acc/runtime/data/images/image_dataset.hpp"
#include "acc/runtime/data/images/image_transforms.hpp"
#include "acc/runtime/data/samplers.hpp"
#include "acc/runtime/data/tensor_dataset.hpp"
