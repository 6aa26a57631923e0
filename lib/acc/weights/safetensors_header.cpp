// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"
#include "acc/weights/dtype.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostHeadBytes = 100'000'000;
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error({.kind = ErrorKind::config, .what = "is no safetensors file: " + what, .where = file.string()});
}

std::optional<std::uint64_t> bytes_of(const TensorInfo& tensor, int bits) {
  std::uint64_t count = 1;
  for (const std::int64_t size : tensor.shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && count > (std::numeric_limits<std::uint64_t>::max() >> 7U) / factor)
      return std::nullopt;
    count *= factor;
  }
  return (count * static_cast<std::uint64_t>(bits) + 7) / 8;
}

TensorInfo read_tensor(const std::string& name, const Json& entry, const std::filesystem::path& file) {
  TensorInfo tensor{.name = name};
  try {
    tensor.dtype = entry.at("dtype").get<std::string>();
    for (const Json& size : entry.at("shape")) {
      const bool fits = size.is_number_unsigned() && size.get<std::uint64_t>() <= kMaxSize;
      if (!fits) fail(file, fmt::format("the shape of '{}' has no such size", name));
      tensor.shape.push_back(size.get<std::int64_t>());
    }
    const Json& offsets = entry.at("data_offsets");
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      fail(file, fmt::format("'{}' has no place in it", name));
    tensor.begin = offsets[0].get<std::uint64_t>();
    tensor.end = offsets[1].get<std::uint64_t>();
  } catch (const Json::exception&) {
    fail(file, fmt::format("it says too little about '{}'", name));
  }
  const auto bits = bits_of(tensor.dtype);
  if (!bits) fail(file, fmt::format("'{}' is of the unknown type {}", name, tensor.dtype));
  if (tensor.end < tensor.begin || bytes_of(tensor, *bits) != tensor.end - tensor.begin)
    fail(file, fmt::format("the bytes of '{}' do not fit its shape", name));
  return tensor;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::filesystem::path& file) {
  const Json head = Json::parse(json, nullptr, false);
  if (!head.is_object()) fail(file, "its head is no JSON");
  SafetensorsHeader result{.data_begin = 8 + json.size()};
  for (const auto& [name, entry] : head.items()) {
    if (name != "__metadata__") {
      result.tensors.push_back(read_tensor(name, entry, file));
      continue;
    }
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail(file, "its metadata is not text");
      result.metadata[key] = value.get<std::string>();
    }
  }
  std::ranges::sort(result.tensors, {},
                    [](const TensorInfo& tensor) { return std::pair(tensor.begin, tensor.end); });
  std::uint64_t reached = 0;
  for (const TensorInfo& tensor : result.tensors) {
    if (tensor.begin != reached)
      fail(file, fmt::format("there is a gap or an overlap before '{}'", tensor.name));
    reached = tensor.end;
  }
  if (reached != data_bytes)
    fail(file, fmt::format("it has {} bytes of tensors and tells of {}", data_bytes, reached));
  return result;
}

SafetensorsHeader read_safetensors_header(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);  // fails for what is not a regular file
  std::ifstream in;
  if (!error) in.open(file, std::ios::binary);
  if (error || !in) {
    throw Error({.kind = ErrorKind::system,
                 .what = "cannot be read" + (error ? ": " + error.message() : ""),
                 .where = file.string()});
  }
  std::uint64_t length = 0;
  if (size < 8 || !in.read(reinterpret_cast<char*>(&length), 8)) fail(file, "it is too short");
  if (length > kMostHeadBytes || length > size - 8) fail(file, "its head is cut");
  std::string json(length, '\0');
  if (!in.read(json.data(), static_cast<std::streamsize>(length))) fail(file, "its head is cut");
  return parse_safetensors_header(json, size - 8 - length, file);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  Json head = Json::object();
  if (!header.metadata.empty()) head["__metadata__"] = header.metadata;
  for (const TensorInfo& tensor : header.tensors) {
    head[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string json = head.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::uint64_t length = json.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + json;
}

}  // namespace acc::launcher
