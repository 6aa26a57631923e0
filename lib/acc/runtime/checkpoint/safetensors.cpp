// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/safetensors.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/mapped_file.hpp"

namespace acc {
namespace {

using Json = nlohmann::json;

// The format's own limit: a header is text, and this much text is an attack or an accident.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 12> kTypes = {{
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"F32", at::kFloat},
    {"I32", at::kInt},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
}};

struct Damaged {
  std::string what = {};
};

struct Place {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape = {};
  std::uint64_t begin = 0;
};

at::ScalarType type_named(const std::string& word) {
  const auto* found = std::ranges::find(kTypes, word, [](const auto& pair) { return pair.first; });
  if (found == kTypes.end()) throw Damaged{fmt::format("has the unknown type {}", word)};
  return found->second;
}

// Every number of the header is checked against the bytes that there are before any is used.
Place place_of(const Json& entry, std::uint64_t room) {
  Place place{.type = type_named(entry.at("dtype").get<std::string>())};
  std::uint64_t bytes = c10::elementSize(place.type);
  for (const Json& size : entry.at("shape")) {
    if (!size.is_number_unsigned()) throw Damaged{"has a size that is no whole number"};
    place.shape.push_back(size.get<std::int64_t>());
    if (place.shape.back() < 0 || __builtin_mul_overflow(bytes, size.get<std::uint64_t>(), &bytes)) {
      throw Damaged{"has an impossible shape"};
    }
  }
  const Json& offsets = entry.at("data_offsets");
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    throw Damaged{"has no offsets"};
  }
  place.begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (place.begin > end || end > room || end - place.begin != bytes)
    throw Damaged{"has offsets that do not fit"};
  return place;
}

at::Tensor tensor_at(const Place& place, const std::shared_ptr<MappedFile>& mapped,
                     std::uint64_t data_begin) {
  char* first = mapped->data() + data_begin + place.begin;
  const at::TensorOptions options(place.type);
  if (reinterpret_cast<std::uintptr_t>(first) % c10::elementSize(place.type) == 0) {
    return at::from_blob(
        first, place.shape, [mapped](void* /*data*/) {}, options);
  }
  at::Tensor copy = at::empty(place.shape, options);
  std::copy_n(first, copy.nbytes(), static_cast<char*>(copy.mutable_data_ptr()));
  return copy;
}

Safetensors parse(const std::shared_ptr<MappedFile>& mapped) {
  if (mapped->size() < kLengthBytes) throw Damaged{"is too short"};
  std::uint64_t length = 0;
  std::memcpy(&length, mapped->data(), kLengthBytes);
  if (length > kMostHeaderBytes || length > mapped->size() - kLengthBytes)
    throw Damaged{"has no whole header"};
  const std::uint64_t data_begin = kLengthBytes + length;
  const Json header = Json::parse(mapped->data() + kLengthBytes, mapped->data() + data_begin);
  if (!header.is_object()) throw Damaged{"has a header that is no JSON object"};
  Safetensors content;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      content.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    try {
      content.tensors[name] = tensor_at(place_of(entry, mapped->size() - data_begin), mapped, data_begin);
    } catch (const Damaged& damaged) {
      throw Damaged{fmt::format("is damaged: tensor '{}' {}", name, damaged.what)};
    }
  }
  return content;
}

std::string_view name_of(at::ScalarType type, const std::string& tensor) {
  const auto* found = std::ranges::find(kTypes, type, [](const auto& pair) { return pair.second; });
  if (found != kTypes.end()) return found->first;
  throw Error({.what = fmt::format("{} cannot be written to a safetensors file", c10::toString(type)),
               .where = fmt::format("tensor '{}'", tensor)});
}

using Entry = std::pair<std::string, at::Tensor>;

// As Python's writer: wide types first, so that each tensor begins at a multiple of its width; then by name.
std::vector<Entry> in_file_order(const NamedTensors& tensors) {
  std::vector<Entry> entries(tensors.begin(), tensors.end());
  std::ranges::stable_sort(entries, std::greater(),
                           [](const Entry& entry) { return entry.second.element_size(); });
  for (auto& [name, tensor] : entries) tensor = tensor.detach().cpu().contiguous();
  return entries;
}

std::string header_of(const std::vector<Entry>& entries, const Safetensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::size_t begin = 0;
  for (const auto& [name, tensor] : entries) {
    const std::size_t end = begin + tensor.nbytes();
    header[name] = {{"dtype", name_of(tensor.scalar_type(), name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<MappedFile>(file);
  const auto fail = [&](const std::string& what) {
    return Error({.kind = ErrorKind::system, .what = what, .where = file.string()});
  };
  try {
    return parse(mapped);
  } catch (const Damaged& damaged) {
    throw fail(damaged.what);
  } catch (const Json::exception&) {
    throw fail("is no safetensors file, or its header is damaged");
  }
}

void write_safetensors(const std::filesystem::path& file, const Safetensors& content) {
  const std::vector<Entry> entries = in_file_order(content.tensors);
  const std::string header = header_of(entries, content);
  const auto length = static_cast<std::uint64_t>(header.size());
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), kLengthBytes}, header};
  for (const auto& [name, tensor] : entries) {
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  replace_file(file, parts);
}

}  // namespace acc
