// SPDX-License-Identifier: Apache-2.0
#include "acc/base/error.hpp"

#include <utility>

#include "acc/base/printable.hpp"

namespace acc {
namespace {

std::string join_lines(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += to_string(problem);
  }
  return text;
}

}  // namespace

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return 2;  // argparse's code: scripts written for torchrun keep working
    case ErrorKind::system:
      return 1;
    case ErrorKind::rendezvous:
      return 75;  // EX_TEMPFAIL: schedulers may requeue
  }
  return 1;
}

std::string to_string(const Problem& problem) {
  std::string text = problem.where.empty() ? "" : problem.where + ": ";
  text += problem.what;
  if (!problem.hint.empty()) text += " (" + problem.hint + ")";
  return printable(text);
}

Error::Error(Fields fields)
    : Error(fields.kind, {{std::move(fields.what), std::move(fields.where), std::move(fields.hint)}}) {}

Error::Error(ErrorKind kind, std::vector<Problem> problems)
    : kind_(kind), problems_(std::move(problems)), text_(join_lines(problems_)) {}

}  // namespace acc
