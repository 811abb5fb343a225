// The one place that calls oneTBB. It is compiled without ThreadSanitizer, which does not see how the library hands
// work over.
#pragma once

#include <cstddef>

namespace cgcn::detail {

// Calls function(context, thread) `calls` times, on up to that many threads of an arena of `threads`, of which the
// caller is one. Numbers of threads are below `threads`, and no two threads have the same one at the same time. Returns
// when all calls have.
void call_on_threads(int threads, size_t calls, void (*function)(void* context, size_t thread), void* context);

}  // namespace cgcn::detail
