// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace acc {

/// Image files and the class of each: files[i] is of classes[labels[i]].
struct ImageFiles {
  std::vector<std::filesystem::path> files = {};
  std::vector<std::int64_t> labels = {};
  /// In the order of their names.
  std::vector<std::string> classes = {};
};

/// The .jpg, .jpeg and .png files below `root`, where each folder is a class: files and classes in the order
/// of torchvision's ImageFolder. Throws Error{system} when `root` cannot be read, has no folders, or one of
/// them has no such file.
ImageFiles image_folder(const std::filesystem::path& root);

/// Those files of the folder itself, by name; the class is what the first group of `pattern`, a regular
/// expression of ECMAScript, finds in a file's name, as in "^(.*)_\\d+[.]jpg$". Throws Error{usage} for an
/// expression that is none or has no group, Error{system} for a folder without images and for a file in which
/// the expression finds nothing.
ImageFiles labelled_images(const std::filesystem::path& folder, const std::string& pattern);

}  // namespace acc
