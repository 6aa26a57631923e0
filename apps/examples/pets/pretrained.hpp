// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "acc/data.hpp"
#include "resnet.hpp"

/// What timm says of weights in the `config.json` beside them.
struct PretrainedConfig {
  std::string architecture = "resnet50d";
  /// Of the images that the weights were trained on; by default ImageNet's.
  acc::Normalize normalize = {};
};

/// Reads `config.json` in the folder of `weights`, or in `weights` where that is a folder; without such a
/// file the defaults. Throws acc::Error{config} naming the file and the key for a value of another type.
PretrainedConfig read_pretrained_config(const std::filesystem::path& weights);

/// Loads a file or folder of timm's weights. A classifier of another shape is left out: the network keeps its
/// own. Throws acc::Error for a file that cannot be read, and for all other differences. Returns whether the
/// classifier was loaded, too.
bool load_pretrained(ResNetDImpl& net, const std::filesystem::path& weights);
