// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of safetensors itself
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& reason) {
  throw Error(
      {.kind = ErrorKind::config, .what = "is not a safetensors file: " + reason, .where = file.string()});
}

// The number of bytes that the shape needs; nullopt when it overflows, or ends within a byte.
std::optional<std::uint64_t> bytes_of(const TensorInfo& tensor, int bits) {
  std::uint64_t count = 1;
  for (const std::int64_t size : tensor.shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && count > (std::numeric_limits<std::uint64_t>::max() >> 7U) / factor)
      return std::nullopt;
    count *= factor;
  }
  count *= static_cast<std::uint64_t>(bits);
  return count % 8 == 0 ? std::optional(count / 8) : std::nullopt;
}

TensorInfo parse_tensor(const std::string& name, const Json& entry, const std::filesystem::path& file) {
  TensorInfo tensor{.name = name};
  try {
    tensor.dtype = entry.at("dtype").get<std::string>();
    for (const Json& size : entry.at("shape")) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMaxSize)
        fail(file, fmt::format("the shape of '{}' has an invalid size", name));
      tensor.shape.push_back(size.get<std::int64_t>());
    }
    const Json& offsets = entry.at("data_offsets");
    if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
      fail(file, fmt::format("the data_offsets of '{}' are not two offsets", name));
    tensor.begin = offsets[0].get<std::uint64_t>();
    tensor.end = offsets[1].get<std::uint64_t>();
  } catch (const Json::exception&) {
    fail(file, fmt::format("dtype, shape or data_offsets of '{}' are missing or invalid", name));
  }
  const auto bits = bits_of(tensor.dtype);
  if (!bits) fail(file, fmt::format("'{}' has the unknown dtype {}", name, tensor.dtype));
  if (tensor.end < tensor.begin || bytes_of(tensor, *bits) != tensor.end - tensor.begin)
    fail(file, fmt::format("the bytes of '{}' do not match its shape", name));
  return tensor;
}

SafetensorsHeader parse_json(std::string_view json, std::uint64_t data_bytes,
                             const std::filesystem::path& file) {
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) fail(file, "its header is not a JSON object");
  SafetensorsHeader header{.data_begin = kLengthBytes + json.size()};
  for (const auto& [name, entry] : root.items()) {
    if (name != "__metadata__") {
      header.tensors.push_back(parse_tensor(name, entry, file));
      continue;
    }
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail(file, "its metadata are not strings");
      header.metadata[key] = value.get<std::string>();
    }
  }
  std::ranges::sort(header.tensors, {},
                    [](const TensorInfo& tensor) { return std::pair(tensor.begin, tensor.end); });
  std::uint64_t end = 0;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.begin != end) fail(file, fmt::format("there is a gap or an overlap before '{}'", tensor.name));
    end = tensor.end;
  }
  if (end != data_bytes)
    fail(file, fmt::format("its header describes {} bytes of tensors, the file has {}", end, data_bytes));
  return header;
}

// The length of the JSON of a file of `size` bytes, from its first 8.
std::size_t json_length(const char* first_bytes, std::uint64_t size, const std::filesystem::path& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, first_bytes, kLengthBytes);
  if (length > kMaxHeaderBytes || length > size - kLengthBytes) fail(file, "its header is truncated");
  return length;
}

}  // namespace

std::optional<int> bits_of(std::string_view dtype) {
  using Row = std::pair<std::string_view, int>;
  constexpr std::array<Row, 22> kRows = {{
      {"F64", 64},        {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},    {"I32", 32},
      {"U32", 32},        {"F16", 16},    {"BF16", 16},   {"I16", 16},    {"U16", 16},    {"I8", 8},
      {"U8", 8},          {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
  }};
  const auto* found = std::ranges::find(kRows, dtype, &Row::first);
  return found == kRows.end() ? std::nullopt : std::optional(found->second);
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
  std::array<char, kLengthBytes> first_bytes = {};
  if (size < kLengthBytes || !in.read(first_bytes.data(), kLengthBytes)) fail(file, "it is too short");
  std::string json(json_length(first_bytes.data(), size, file), '\0');
  if (!in.read(json.data(), static_cast<std::streamsize>(json.size()))) fail(file, "its header is truncated");
  return parse_json(json, size - kLengthBytes - json.size(), file);
}

SafetensorsHeader parse_safetensors_header(std::string_view content, const std::filesystem::path& file) {
  if (content.size() < kLengthBytes) fail(file, "it is too short");
  const std::size_t length = json_length(content.data(), content.size(), file);
  return parse_json(content.substr(kLengthBytes, length), content.size() - kLengthBytes - length, file);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  // Looking for a name, as operator[] does, takes as long as there are names.
  auto& entries = root.get_ref<nlohmann::ordered_json::object_t&>();
  for (const TensorInfo& tensor : header.tensors) {
    entries.emplace_back(tensor.name, nlohmann::ordered_json{{"dtype", tensor.dtype},
                                                             {"shape", tensor.shape},
                                                             {"data_offsets", {tensor.begin, tensor.end}}});
  }
  std::string json = root.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = json.size();
  std::string text(kLengthBytes, '\0');
  std::memcpy(text.data(), &length, kLengthBytes);
  return text + json;
}

}  // namespace acc
