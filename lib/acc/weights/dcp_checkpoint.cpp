// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/dcp_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/formats/dcp_ranges.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// The dtypes of torch with their names in safetensors.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kDtypes = {{
    {"float64", "F64"},
    {"float32", "F32"},
    {"float16", "F16"},
    {"bfloat16", "BF16"},
    {"int64", "I64"},
    {"int32", "I32"},
    {"int16", "I16"},
    {"int8", "I8"},
    {"uint64", "U64"},
    {"uint32", "U32"},
    {"uint16", "U16"},
    {"uint8", "U8"},
    {"bool", "BOOL"},
    {"complex64", "C64"},
    {"float8_e4m3fn", "F8_E4M3"},
    {"float8_e5m2", "F8_E5M2"},
    {"float8_e8m0fnu", "F8_E8M0"},
    {"float8_e4m3fnuz", "F8_E4M3FNUZ"},
    {"float8_e5m2fnuz", "F8_E5M2FNUZ"},
}};

// Whether every tensor is below one key.
bool share_a_key(const DcpMetadata& metadata) {
  return std::ranges::all_of(metadata.tensors, [&](const auto& item) {
    const DcpPath& path = item.second.path;
    return path.size() > 1 && path.front() == metadata.tensors.begin()->second.path.front();
  });
}

DcpWeight weight_of(const std::string& name, DcpTensor tensor, bool without_key, const fs::path& file) {
  const auto* dtype =
      std::ranges::find(kDtypes, tensor.dtype->name, [](const auto& row) { return row.first; });
  if (dtype == kDtypes.end())
    refuse_file(file,
                fmt::format("'{}' is of type {}, which safetensors files lack", name, tensor.dtype->name));
  TensorInfo info{.name = without_key ? dcp_name({tensor.path.begin() + 1, tensor.path.end()}) : name,
                  .dtype = std::string(dtype->second),
                  .shape = tensor.shape,
                  .end = dcp_elements(tensor.shape) * tensor.dtype->bytes};
  return {.info = std::move(info), .tensor = std::move(tensor)};
}

}  // namespace

bool is_dcp_checkpoint(const fs::path& folder) {
  return fs::exists(folder / kDcpMetadataFile);
}

std::vector<DcpWeight> read_dcp_checkpoint(const fs::path& folder) {
  const fs::path file = folder / kDcpMetadataFile;
  const DcpMetadata metadata = read_dcp_metadata(folder);
  if (!metadata.objects.empty()) {
    refuse_file(file, fmt::format("holds '{}', which is not a tensor", metadata.objects.begin()->first),
                "give the folder of the weights, as pytorch_model_fsdp_0");
  }
  const bool without_key = share_a_key(metadata);
  std::vector<DcpWeight> weights;
  for (const auto& [name, tensor] : metadata.tensors)
    weights.push_back(weight_of(name, tensor, without_key, file));
  std::ranges::sort(weights, {}, [](const DcpWeight& weight) { return weight.info.name; });
  return weights;
}

std::string read_dcp_weight(const fs::path& folder, const DcpWeight& weight) {
  std::string whole(weight.info.end, '\0');
  read_dcp_range(folder, weight.tensor, 0, dcp_elements(weight.tensor.shape), whole.data());
  return whole;
}

}  // namespace acc::launcher
