// SPDX-License-Identifier: Apache-2.0
#include "acc/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "acc/report/html_text.hpp"

namespace acc::launcher {
namespace {

// In percent.
constexpr double kMinWidth = 0.3;
constexpr double kGap = 0.1;

// In percent of the width.
double percent_of(double moment, const TimeSpan& time) {
  return time.length() <= 0 ? 0 : std::clamp(100 * (moment - time.begin) / time.length(), 0.0, 100.0);
}

// A distance between marks that people count in, of which there are at most six.
double tick_of(double length) {
  constexpr std::array kSteps = {0.001,  0.01,   0.1,    0.2,     0.5,     1.0,     2.0,    5.0,
                                 10.0,   15.0,   30.0,   60.0,    120.0,   300.0,   600.0,  900.0,
                                 1800.0, 3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0};
  constexpr double kMaxTicks = 6;
  const auto* const step =
      std::ranges::find_if(kSteps, [&](double one) { return length / one <= kMaxTicks; });
  return step != kSteps.end()
             ? *step
             : 86400 * std::max(1.0, static_cast<double>(static_cast<int>(length / 86400 / kMaxTicks) + 1));
}

// A horizontal line in the middle of a row for each run of cells of one class.
std::map<std::string, std::string> paths_of(std::size_t columns, const std::vector<std::string>& classes) {
  std::map<std::string, std::string> paths;
  for (std::size_t begin = 0; begin < classes.size();) {
    const std::size_t row_end = (begin / columns + 1) * columns;
    std::size_t end = begin + 1;
    while (end < row_end && classes[end] == classes[begin]) ++end;
    if (!classes[begin].empty())
      fmt::format_to(std::back_inserter(paths[classes[begin]]), "M{} {}.5h{}", begin % columns,
                     begin / columns, end - begin);
    begin = end;
  }
  return paths;
}

}  // namespace

std::string lane_svg(const TimeSpan& time, const std::vector<Bar>& bars) {
  std::string svg = R"(<svg class="lane" role="img" width="100%" height="18">)";
  for (const Bar& bar : bars) {
    const double begin = percent_of(bar.time.begin, time);
    // Bars that follow each other are told apart.
    const double width = std::max(percent_of(bar.time.end, time) - begin - kGap, kMinWidth);
    fmt::format_to(std::back_inserter(svg),
                   R"(<rect x="{:.2f}%" width="{:.2f}%" height="18" class="{}"><title>{}</title></rect>)",
                   std::min(begin, 100 - width), width, bar.style, html_text(bar.title));
  }
  return svg + "</svg>\n";
}

std::string axis_svg(const TimeSpan& time) {
  std::string svg = R"(<svg class="axis" aria-hidden="true" width="100%" height="22">)";
  const double tick = tick_of(time.length());
  for (double moment = 0; moment <= time.length(); moment += tick) {
    const double offset = percent_of(time.begin + moment, time);
    const char* const anchor = offset < 3 ? "start" : offset > 95 ? "end" : "middle";
    fmt::format_to(
        std::back_inserter(svg),
        R"(<line x1="{0:.2f}%" x2="{0:.2f}%" y2="5"/><text x="{0:.2f}%" y="18" text-anchor="{1}">{2}</text>)",
        offset, anchor, duration_text(moment));
    if (tick <= 0) break;
  }
  return svg + "</svg>\n";
}

std::string heat_svg(std::size_t columns, const std::vector<std::string>& titles,
                     const std::vector<std::string>& classes) {
  const std::size_t rows = titles.size();
  const std::size_t height = std::clamp<std::size_t>(360 / std::max<std::size_t>(rows, 1), 1, 20) * rows;
  std::string svg = fmt::format(
      R"(<svg class="heat" role="img" width="100%" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none">)",
      height, columns, rows);
  for (const auto& [style, path] : paths_of(columns, classes))
    fmt::format_to(std::back_inserter(svg), R"(<path class="{}" d="{}"/>)", style, path);
  for (std::size_t row = 0; row < rows; ++row)
    fmt::format_to(std::back_inserter(svg), R"(<rect y="{}" width="{}" height="1"><title>{}</title></rect>)",
                   row, columns, html_text(titles[row]));
  return svg + "</svg>\n";
}

std::string line_svg(const TimeSpan& time, double bottom, double top, const std::vector<Line>& lines,
                     const std::string& title) {
  constexpr double kHeight = 100;
  std::string svg = fmt::format(
      R"(<svg class="line" role="img" width="100%" height="90" viewBox="0 0 100 100" preserveAspectRatio="none"><title>{}</title>)",
      html_text(title));
  for (const Line& line : lines) {
    std::string points;
    std::size_t count = 0;
    const auto end_part = [&] {
      // A point alone is a line without a length, which is drawn by its ends.
      if (count == 1) points += points;
      if (count > 0)
        fmt::format_to(std::back_inserter(svg), R"(<polyline class="{}" points="{}"/>)", line.style, points);
      points.clear();
      count = 0;
    };
    for (const auto& [moment, value] : line.points) {
      if (!std::isfinite(value)) {
        end_part();
        continue;
      }
      fmt::format_to(
          std::back_inserter(points), "{:.2f},{:.1f} ", percent_of(moment, time),
          top > bottom ? kHeight * (1 - std::clamp((value - bottom) / (top - bottom), 0.0, 1.0)) : kHeight);
      ++count;
    }
    end_part();
  }
  return svg + "</svg>\n";
}

}  // namespace acc::launcher
