// SPDX-License-Identifier: Apache-2.0
#include "kept_accelerate.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// As `python -m accelerate.commands.accelerate_cli`, which ACC_REPLACE_ACCELERATE would make acc again.
constexpr const char* kPythonProgram =
    "import importlib.util, sys\n"
    "if importlib.util.find_spec('accelerate') is None:\n"
    "    sys.exit('acc: acc does not do this, and accelerate is not installed for ' + sys.executable)\n"
    "from accelerate.commands.accelerate_cli import main\n"
    "main()\n";

bool is_kept_program(const fs::path& file) {
  std::error_code ignored;
  return ::access(file.c_str(), X_OK) == 0 && !fs::equivalent(file, "/proc/self/exe", ignored);
}

fs::path find_kept_program(fs::path called_as) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  for (int link = 0; link <= kMaxLinks; ++link) {
    fs::path kept = called_as.parent_path() / "accelerate.before-acc";
    if (is_kept_program(kept)) return kept;
    std::error_code no_link;
    const fs::path next = fs::read_symlink(called_as, no_link);
    if (no_link) break;
    called_as = called_as.parent_path() / next;
  }
  return {};
}

}  // namespace

KeptAccelerate::KeptAccelerate(const fs::path& called_as, const std::string& python) {
  if (!python.empty()) {
    command_ = {python, "-c", kPythonProgram};
  } else if (const fs::path program = find_kept_program(absolute_path(called_as)); !program.empty()) {
    command_ = {program.string()};
  }
}

void KeptAccelerate::become(const std::vector<std::string>& words) const {
  std::vector<std::string> command = command_;
  command.insert(command.end(), words.begin(), words.end());
  ::execvp(command.front().c_str(), pointers_to(command).data());
  throw Error({.kind = ErrorKind::system,
               .what = std::string("cannot be started: ") + std::strerror(errno),
               .where = command.front()});
}

void KeptAccelerate::become_or_refuse(const std::vector<std::string>& words,
                                      const std::string& reason) const {
  if (!exists()) throw refusal("accelerate " + join(words, " "), reason);
  become(words);
}

Error KeptAccelerate::refusal(const std::string& where, const std::string& reason) {
  return Error({.kind = ErrorKind::system,
                .what = reason + ", and no accelerate was kept that does it",
                .where = where,
                .hint = "pip install accelerate, and then `acc install-accelerate` keeps it"});
}

}  // namespace acc::launcher
