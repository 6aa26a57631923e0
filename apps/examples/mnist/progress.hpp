// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

/// One line about a pass through the data: a bar that moves on a terminal, elsewhere only the line at the
/// end.
class Progress {
 public:
  /// Shows nothing unless `visible`: one process of many talks.
  Progress(bool visible, std::string title, std::size_t steps);

  void step(double loss);

  /// Ends the line with `result`.
  void finish(const std::string& result) const;

 private:
  void draw(double loss) const;

  bool visible_;
  bool terminal_;
  std::string title_;
  std::size_t steps_;
  std::size_t done_ = 0;
  std::size_t drawn_percent_ = 101;
};
