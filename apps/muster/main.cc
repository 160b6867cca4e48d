#include "cli/main.h"

#include "platform/kubernetes/registration.h"
#include "platform/local/registration.h"
#include "platform/ssh/registration.h"
#include "platform/vertex/registration.h"

int main(int argc, char** argv) {
  return muster::cli::Main(argc, argv,
                           {muster::local::Registration(), muster::ssh::Registration(),
                            muster::kubernetes::Registration(), muster::vertex::Registration()});
}
