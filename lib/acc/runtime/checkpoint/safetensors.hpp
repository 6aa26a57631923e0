// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace acc {

class MappedFile;

using NamedTensors = std::map<std::string, at::Tensor>;  ///< Tensors by name, sorted.

/// A safetensors file: tensors and metadata by name.
struct Safetensors {
  NamedTensors tensors = {};                         ///< By name.
  std::map<std::string, std::string> metadata = {};  ///< Texts by name.
};

/// Reads a file that Python's safetensors or write_safetensors wrote. The tensors map the file into memory
/// and read it when they are used; writing to them does not change the file. Throws Error{config} naming the
/// file when it is damaged or has a dtype of less than a byte an element, Error{system} when it cannot be
/// read; nothing in a file is executed, and nothing outside of it is read.
Safetensors read_safetensors(const std::filesystem::path& file);

/// Replaces `file` atomically. Tensors of any device, stride and supported type. Throws Error{usage} naming
/// a tensor whose type the format lacks, such as complex128, or whose name is not UTF-8, Error{system} when
/// the file cannot be written; the old one is then untouched.
void write_safetensors(const std::filesystem::path& file, const Safetensors& content);

namespace detail {

/// What read_safetensors reads, of a part of `mapped` that is such a file; `file` names it in errors.
Safetensors safetensors_in(const std::shared_ptr<MappedFile>& mapped, std::string_view part,
                           const std::filesystem::path& file);

/// Throws Error{usage} for a name that is not UTF-8: Python could not read the file.
void require_utf8_name(const std::string& tensor);

/// Throws what write_safetensors throws before it writes.
void require_writable(const NamedTensors& tensors);

}  // namespace detail

}  // namespace acc
