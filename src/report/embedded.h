// The files that a page is made of, put into the program at build time (cmake/Embed.cmake).
#pragma once

#include <string_view>

namespace cgcn::embedded {

extern const std::string_view kPage;     // page.html
extern const std::string_view kStyle;    // page.css
extern const std::string_view kTools;    // tools.js
extern const std::string_view kCharts;   // charts.js
extern const std::string_view kClasses;  // classes.js
extern const std::string_view kScript;   // page.js
extern const std::string_view kLibrary;  // Chart.js, from the distribution's package

}  // namespace cgcn::embedded
