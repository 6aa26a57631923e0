// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/environment_report.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fstream>

#include "acc/base/text.hpp"
#include "acc/cli/host_facts.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/defaults.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

std::string gpu_lines(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return "- GPU type: none found\n";
  std::string text;
  for (const Gpu& gpu : gpus) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    text += fmt::format("- GPU {} type: {} ({:.2f} GB)\n", gpu.index, gpu.name,
                        static_cast<double>(gpu.memory_bytes) / kGiB);
  }
  return text;
}

// The NCCL of torch's wheels is a package per CUDA version.
std::string nccl_version(const std::map<std::string, std::string>& packages) {
  for (const auto& [name, version] : packages) {
    if (name.starts_with("nvidia_nccl")) return version;
  }
  return "Not found";
}

std::string package_lines(const EnvironmentFacts& facts) {
  const auto version = [&](const char* name) {
    const auto found = facts.packages.find(name);
    return found == facts.packages.end() ? std::string("Not found") : found->second;
  };
  std::string text = fmt::format("- Numpy version: {}\n", version("numpy"));
  text += fmt::format("- PyTorch version: {}\n", version("torch"));
  text += fmt::format("- `Accelerate` version: {}\n", version("accelerate"));
  text += fmt::format("- NCCL version: {}\n", nccl_version(facts.packages));
  const std::string libtorch = libtorch_version(facts.libtorch);
  text += facts.libtorch.empty()
              ? std::string("- LibTorch: Not found\n")
              : fmt::format("- LibTorch: {} ({})\n", libtorch.empty() ? "unknown version" : libtorch,
                            facts.libtorch.string());
  return text + fmt::format("- Compiler of `acc`: {}\n", facts.compiler);
}

std::string numa_lines(const std::vector<NumaNode>& nodes) {
  std::string text;
  for (const NumaNode& node : nodes) text += fmt::format("- NUMA node {}: CPUs {}\n", node.number, node.cpus);
  return text;
}

std::string config_lines(const EnvironmentFacts& facts) {
  if (!facts.config) return "- `acc` default config:\n\tNot found\n";
  std::string text = fmt::format("- `acc` {} config ({}):\n", facts.config_is_default ? "default" : "passed",
                                 facts.config->path.string());
  for (const auto& [key, value] : with_defaults(facts.config->values)) {
    const bool empty_section = value.is_object() && value.empty();
    if (!empty_section) text += fmt::format("\t- {}: {}\n", key, display(value));
  }
  for (const Problem& note : facts.config->notes) text += fmt::format("\t({})\n", to_string(note));
  return text;
}

}  // namespace

// The version that a virtual environment notes down, else the one in the name of the file itself.
std::string python_version(const fs::path& python) {
  std::ifstream notes(python.parent_path().parent_path() / "pyvenv.cfg");
  for (std::string line; std::getline(notes, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, equals));
    if (key == "version" || key == "version_info")
      return std::string(trim(std::string_view(line).substr(equals + 1)));
  }
  std::error_code ignored;
  const std::string name = fs::canonical(python, ignored).filename();
  const bool has_version = name.starts_with("python") && name.find('.') != std::string::npos;
  return has_version ? name.substr(std::string_view("python").size()) : "";
}

std::string platform_name() {
  utsname system = {};
  ::uname(&system);
  return fmt::format("{}-{}-{}-with-glibc{}", system.sysname, system.release, system.machine,
                     ::gnu_get_libc_version());
}

std::string environment_report(const EnvironmentFacts& facts) {
  const std::string python = facts.python.empty() ? "Not found" : facts.python.string();
  const std::string version = facts.python.empty() ? "" : python_version(facts.python);
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  std::string text = fmt::format("- `acc` version: {}\n", facts.version);
  text += fmt::format("- Platform: {}\n", platform_name());
  text += fmt::format("- `acc` location: {}\n", facts.program.string());
  text += fmt::format("- Python: {}\n", python);
  if (!version.empty()) text += fmt::format("- Python version: {}\n", version);
  text += package_lines(facts);
  text += fmt::format("- PyTorch accelerator: {}\n", facts.machine.gpus.empty() ? "N/A" : "CUDA");
  text += fmt::format("- System RAM: {:.2f} GB\n", static_cast<double>(facts.machine.memory_bytes) / kGiB);
  text += fmt::format("- CPUs: {} allowed of {}\n", facts.machine.allowed_cpus, facts.machine.online_cpus);
  text += numa_lines(facts.numa);
  text += gpu_lines(facts.machine.gpus);
  if (!facts.machine.driver_version.empty())
    text += fmt::format("- NVIDIA driver: {}\n", facts.machine.driver_version);
  text += fmt::format("- Scheduler: {}\n", facts.scheduler);
  return text + config_lines(facts);
}

}  // namespace acc::launcher
