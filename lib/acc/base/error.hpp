// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace acc {

/// The kind of an error, which determines the exit code.
enum class ErrorKind {
  usage,       ///< a flag, a variable or a combination of them
  config,      ///< a config file
  system,      ///< the machine refused: permissions, full disk, a port in use
  rendezvous,  ///< the nodes of a job did not find each other in time
};

/// The exit code of `acc` for an error of this kind. The table is in apps/docs/reference.md.
int exit_code(ErrorKind kind);

/// One problem: what is wrong, where (`file:line`, a flag, a variable), and what to do.
struct Problem {
  std::string what = {};   ///< What is wrong.
  std::string where = {};  ///< Where: `file:line`, a flag, a variable.
  std::string hint = {};   ///< What to do.

  bool operator==(const Problem&) const = default;
};

/// `where: what (hint)`, leaving out what is empty; printable(), for parts of it may be another program's.
std::string to_string(const Problem& problem);

/// An error that the user must fix, caught once, in `main`. An invalid file throws all its problems at once.
class Error : public std::exception {
 public:
  struct Fields {
    ErrorKind kind = ErrorKind::usage;  ///< Determines the exit code.
    std::string what = {};              ///< As in Problem.
    std::string where = {};             ///< As in Problem.
    std::string hint = {};              ///< As in Problem.
  };

  explicit Error(Fields fields);
  Error(ErrorKind kind, std::vector<Problem> problems);

  ErrorKind kind() const { return kind_; }                            ///< Determines the exit code.
  const std::vector<Problem>& problems() const { return problems_; }  ///< At least one.

  /// One line per problem, without a newline at the end.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::vector<Problem> problems_;
  std::string text_;
};

}  // namespace acc
