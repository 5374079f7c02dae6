// Before libevent's own configuration, which would give these types other field names than Glibc's.
#include <pthread.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/types.h>

#include <event2/event.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/thread.h>

// A GNU extension, which the Glibc module leaves out.
int pthread_setname_np(pthread_t thread, const char *name);
