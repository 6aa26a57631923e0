// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/visible_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/environment.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kCudaMask = "CUDA_VISIBLE_DEVICES";

std::vector<std::string> fields_of(const std::string& mask) {
  std::vector<std::string> names;
  if (trim(mask).empty()) return names;
  for (const std::string& name : split(mask, ',')) names.emplace_back(trim(name));
  return names;
}

// CUDA takes a list up to its first entry of another kind, and nothing of one that names a device twice. A
// comma at the end does no harm.
void require_list_of_gpus(const std::string& mask, const std::string& origin) {
  std::vector<std::string> names = fields_of(mask);
  if (names.size() > 1 && names.back().empty()) names.pop_back();
  for (const std::string& name : names) {
    if (!name.empty() && std::ranges::count(names, name) > 1)
      fail(origin, fmt::format("gpu_ids names GPU {} twice, and CUDA shows none of such a list", name),
           "name it once");
  }
  const std::vector<std::string> devices = devices_of_mask(mask);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i < devices.size() && devices[i] == names[i]) continue;
    fail(origin, fmt::format("'{}' in '{}' does not name a GPU", names[i], mask),
         "numbers from 0, or names that begin with GPU- or MIG-, separated by commas");
  }
}

}  // namespace

bool selects_devices(std::string_view ids) {
  return !trim(ids).empty() && to_lower(trim(ids)) != "all";
}

int count_devices(const std::string& ids, DistributedType type, const std::string& origin) {
  if (device_mask_name(type) != kCudaMask) return static_cast<int>(fields_of(ids).size());
  require_list_of_gpus(ids, origin);
  return static_cast<int>(devices_of_mask(ids).size());
}

void require_gpus(const std::string& mask, const Machine& machine, const std::string& origin) {
  if (machine.gpus.empty()) return;
  require_list_of_gpus(mask, origin);
  const std::vector<std::string> devices = devices_of_mask(mask);
  const std::size_t shown = visible_gpus(machine, Environment{{std::string(kCudaMask), mask}}).size();
  if (shown == devices.size()) return;
  fail(origin, fmt::format("this machine has no GPU {}", devices[shown]),
       fmt::format("it has {}, counted from 0", pluralize(machine.gpus.size(), "GPU")));
}

std::vector<Gpu> imagined_gpus(std::size_t count, const std::string& ids) {
  const std::vector<std::string> names = fields_of(ids);
  std::vector<Gpu> gpus;
  for (std::size_t i = 0; i < count; ++i)
    gpus.push_back({.index = static_cast<int>(i), .uuid = i < names.size() ? names[i] : ""});
  return gpus;
}

std::string_view device_mask_name(DistributedType type) {
  switch (type) {
    case DistributedType::multi_xpu:
      return "ZE_AFFINITY_MASK";
    case DistributedType::multi_mlu:
      return "MLU_VISIBLE_DEVICES";
    case DistributedType::multi_sdaa:
      return "SDAA_VISIBLE_DEVICES";
    case DistributedType::multi_musa:
      return "MUSA_VISIBLE_DEVICES";
    case DistributedType::multi_npu:
      return "ASCEND_RT_VISIBLE_DEVICES";
    case DistributedType::multi_hpu:
      return "HABANA_VISIBLE_MODULES";
    case DistributedType::multi_neuron:
      return "NEURON_RT_VISIBLE_CORES";
    default:
      return kCudaMask;
  }
}

std::string select_devices(const std::string& ids, const std::string& mask_name,
                           const std::optional<std::string>& inherited, const std::string& origin) {
  if (!inherited) return ids;
  const std::vector<std::string> offered =
      mask_name == kCudaMask ? devices_of_mask(*inherited) : fields_of(*inherited);
  std::vector<std::string> chosen;
  for (const std::string& id : fields_of(ids)) {
    const auto number = parse_integer(id);
    if (number && (*number < 0 || static_cast<std::size_t>(*number) >= offered.size())) {
      fail(origin,
           fmt::format("there is no device {} in {}='{}', which acc inherited", id, mask_name, *inherited),
           "numbers count within that list, from 0");
    }
    chosen.push_back(number ? offered[static_cast<std::size_t>(*number)] : id);
  }
  return join(chosen, ",");
}

std::vector<std::string> device_of_each_worker(const std::optional<std::string>& mask,
                                               std::string_view mask_name, std::optional<std::size_t> gpus,
                                               int workers, const std::string& origin) {
  const auto count = static_cast<std::size_t>(workers);
  std::vector<std::string> devices;
  if (mask) {
    devices = gpus ? devices_of_mask(*mask) : fields_of(*mask);
    if (devices.size() < count) {
      fail(origin,
           fmt::format("{}, but {}='{}' names fewer devices", pluralize(count, "worker"), mask_name, *mask));
    }
  } else {
    if (gpus && *gpus < count) {
      fail(origin,
           fmt::format("{}, but this machine has {}", pluralize(count, "worker"), pluralize(*gpus, "GPU")));
    }
    for (std::size_t i = 0; i < count; ++i) devices.push_back(fmt::to_string(i));
  }
  devices.resize(count);
  return devices;
}

}  // namespace acc::launcher
