/* The command line tool: one binary, a table of subcommands. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

static const struct command commands[] = {
    { "run",        "answer a prompt",                                             command_run        },
    { "chat",       "hold a conversation",                                         command_chat       },
    { "info",       "show what a GGUF file holds, and check it",                   command_info       },
    { "tokenize",   "show the token ids of a text",                                command_tokenize   },
    { "logits",     "show the likeliest next tokens after a prompt",               command_logits     },
    { "perplexity", "measure how well a model predicts a text",                    command_perplexity },
    { "plan",       "show every byte that a run will use, before it runs",         command_plan       },
    { "bench",      "measure prompt and generation speed, load time and memory",   command_bench      },
    { "quantize",   "write a model with weights of other types",                   command_quantize   },
};

static void help(FILE *out) {
    fprintf(out, "usage: arenite COMMAND [arguments]\n\n");
    for (size_t i = 0; i < sizeof commands/sizeof *commands; i++) fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\narenite COMMAND --help says more. arenite --version prints the version.\n");
}

/* A standard stream that came closed stays useless: otherwise the model would be opened in its place. */
static bool streams_open(void) {
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) return false;
    }
    return true;
}

/* Output that did not reach its place makes the run a failed one, unless that has been said. */
static int finish(int status) {
    if (status == 1 && interrupted()) return fail("interrupted");
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return status;
    return status ? status : fail("writing the output: %s", errno ? strerror(errno) : "it could not be written");
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) { help(stderr); return 2; }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) { help(stdout); return 0; }
    if (!strcmp(argv[1], "--version")) { printf("arenite %s (interface of ggml %s)\n", ARENITE_VERSION, ggml_version()); return 0; }
    for (size_t i = 0; i < sizeof commands/sizeof *commands; i++) {
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 2, argv + 2);
    }
    return usage("no such command: '%s' (see arenite --help)", argv[1]);
}

int main(int argc, char **argv) {
    if (!streams_open()) return 1;
    signal(SIGXFSZ, SIG_IGN);           /* a file size limit is a write error like others */
    return finish(dispatch(argc, argv));
}
