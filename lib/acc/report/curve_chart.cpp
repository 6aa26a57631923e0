// SPDX-License-Identifier: Apache-2.0
#include "acc/report/curve_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "acc/report/html_text.hpp"
#include "acc/report/log_scale.hpp"

namespace acc::launcher {
namespace {

// In pixels; widths are percentages, so that text is as large at any width.
constexpr double kHeight = 200;

/// A logarithmic axis.
struct Axis {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0;

  void include(double value) {
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  /// From 0 to 1.
  double part(double value) const {
    return highest > lowest ? log2_of(value / lowest) / log2_of(highest / lowest) : 0.5;
  }
};

// 1, 2 and 5 times a power of ten, at or beyond the value.
double round_up(double value) {
  const double power = power_of_ten_below(value);
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power * (1 + 1e-9)) return step * power;
  }
  return 10 * power;
}

// Powers of ten within the axis; where these are fewer than three, 2 and 5 times them as well.
std::vector<double> ticks_of(const Axis& axis) {
  std::vector<double> powers;
  std::vector<double> ticks;
  for (double power = power_of_ten_below(axis.lowest); power <= axis.highest * (1 + 1e-9); power *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double tick = step * power;
      if (tick < axis.lowest * (1 - 1e-9) || tick > axis.highest * (1 + 1e-9)) continue;
      ticks.push_back(tick);
      if (step == 1.0) powers.push_back(tick);
    }
  }
  constexpr std::size_t kFew = 3;
  return powers.size() < kFew ? ticks : powers;
}

double height_of(const Axis& axis, double value) {
  return kHeight * (1 - axis.part(value));
}

std::string grid(const CurveChart& chart, const Axis& axis) {
  std::string svg;
  for (const double tick : ticks_of(axis)) {
    const double height = height_of(axis, tick);
    fmt::format_to(
        std::back_inserter(svg),
        R"(<line x1="0" x2="100%" y1="{0:.1f}" y2="{0:.1f}"/><text x="-6" y="{1:.1f}" text-anchor="end">{2}</text>)",
        height, height + 4, html_text(chart.y_text(tick)));
  }
  return svg;
}

// Each second value of the curves.
std::string x_labels(const CurveChart& chart, const Axis& axis) {
  std::set<double> values;
  for (const CurveChart::Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) values.insert(point.x);
  }
  std::string svg;
  bool is_shown = true;
  for (const double value : values) {
    if (is_shown)
      fmt::format_to(std::back_inserter(svg), R"(<text x="{:.2f}%" y="{}" text-anchor="middle">{}</text>)",
                     100 * axis.part(value), kHeight + 17, html_text(chart.x_text(value)));
    is_shown = !is_shown;
  }
  return svg;
}

// An inner picture is stretched, in which points are in percent; text would be stretched, too.
std::string lines(const CurveChart& chart, const Axis& x, const Axis& y) {
  std::string svg = fmt::format(
      R"(<svg width="100%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible">)",
      kHeight);
  for (const CurveChart::Curve& curve : chart.curves) {
    fmt::format_to(std::back_inserter(svg), R"(<polyline class="{}" points=")", curve.style);
    for (const CurvePoint& point : curve.points)
      fmt::format_to(std::back_inserter(svg), "{:.2f},{:.2f} ", 100 * x.part(point.x),
                     100 * (1 - y.part(point.y)));
    svg += "\"/>";
  }
  return svg + "</svg>";
}

std::string levels(const CurveChart& chart, const Axis& axis) {
  std::string svg;
  for (const CurveChart::Level& level : chart.levels)
    fmt::format_to(
        std::back_inserter(svg),
        R"(<line class="level {0}" x1="0" x2="100%" y1="{1:.1f}" y2="{1:.1f}"><title>{2}</title></line>)",
        level.style, height_of(axis, level.y), html_text(level.title));
  return svg;
}

std::string points(const CurveChart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const CurveChart::Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points)
      fmt::format_to(std::back_inserter(svg),
                     R"(<circle class="{}" cx="{:.2f}%" cy="{:.1f}" r="3.5"><title>{}</title></circle>)",
                     curve.style, 100 * x.part(point.x), height_of(y, point.y), html_text(point.title));
  }
  return svg;
}

}  // namespace

std::string curve_svg(const CurveChart& chart) {
  Axis x;
  Axis y;
  for (const CurveChart::Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) {
      x.include(point.x);
      y.include(point.y);
    }
  }
  if (x.highest <= 0) return "";
  for (const CurveChart::Level& level : chart.levels) y.include(level.y);
  y.include(round_up(y.highest));
  y.include(1 / round_up(1 / y.lowest));
  return fmt::format(R"(<svg class="curve" role="img" width="100%" height="{}">)", kHeight + 22) +
         grid(chart, y) + x_labels(chart, x) + levels(chart, y) + lines(chart, x, y) + points(chart, x, y) +
         "</svg>\n";
}

}  // namespace acc::launcher
