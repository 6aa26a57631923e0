// SPDX-License-Identifier: Apache-2.0
// Data sets, samplers and loaders that distribute samples over processes.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/data/batch_parts.hpp"
#include "acc/runtime/data/batch_plan.hpp"
#include "acc/runtime/data/collated.hpp"
#include "acc/runtime/data/data_loader.hpp"
#include "acc/runtime/data/dataset_files.hpp"
#include "acc/runtime/data/images/image.hpp"
#include "acc/runtime/data/images/image_dataset.hpp"
#include "acc/runtime/data/images/image_transforms.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/data/sample.hpp"
#include "acc/runtime/data/sample_lengths.hpp"
#include "acc/runtime/data/samplers.hpp"
#include "acc/runtime/data/stream_reader.hpp"
#include "acc/runtime/data/tensor_batches.hpp"
