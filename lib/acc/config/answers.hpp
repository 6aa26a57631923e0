// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "acc/config/interview.hpp"

namespace acc::launcher {

/// Answers as they would be typed, by the name of their question or by the key that it writes
/// (`fsdp_config.fsdp_version`), and where each stands.
struct AnswerSheet {
  std::map<std::string, std::string, std::less<>> answers = {};
  std::map<std::string, std::string, std::less<>> places = {};
};

/// Reads a file of `question: answer` lines (YAML, or JSON by its suffix).
/// Throws Error{config} with file:line for what is no such line, Error{system} when it cannot be read.
AnswerSheet read_answers(const std::filesystem::path& file);

/// Answers every question from the sheet, the others by what an empty line means. Throws Error{config} naming
/// the question that has no answer, the answer that was refused with its reason, and answers that nobody
/// asked for.
void answer_all(Interview& interview, const AnswerSheet& sheet);

}  // namespace acc::launcher
