// SPDX-License-Identifier: Apache-2.0
#include "acc/config/environment_report.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fstream>

#include "acc/base/text.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/defaults.hpp"

namespace acc {
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
  const bool tells = name.starts_with("python") && name.find('.') != std::string::npos;
  return tells ? name.substr(std::string_view("python").size()) : "";
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
  text += fmt::format("- PyTorch accelerator: {}\n", facts.machine.gpus.empty() ? "N/A" : "CUDA");
  text += fmt::format("- System RAM: {:.2f} GB\n", static_cast<double>(facts.machine.memory_bytes) / kGiB);
  text += fmt::format("- CPUs: {} allowed of {}\n", facts.machine.allowed_cpus, facts.machine.online_cpus);
  return text + gpu_lines(facts.machine.gpus) + config_lines(facts);
}

}  // namespace acc
