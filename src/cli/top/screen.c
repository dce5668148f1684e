#include "cli/top/screen.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/top/keys.h"

#include <term.h> /* last: it makes macros of the names of all capabilities */
#undef lines
#undef columns

static struct {
    SCREEN *screen;
    WINDOW *keys; /* a pad: reading from a window paints it first */
    struct termios before;
    char *restore; /* the codes that restore the terminal: made beforehand, for handlers of signals */
    size_t restore_length;
    int wake_fd;
    bool colours;
    volatile sig_atomic_t stop;   /* SIGTSTP came */
    volatile sig_atomic_t redraw; /* the size may have changed, or another program has drawn */
} terminal;

/* ---- Signals ---- */

static const int ending[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction ending_before[array_size(ending)];

/* Only calls that a handler may make. The signal then ends the program as it would have without us. */
static void give_back_and_end(int number)
{
    ssize_t written = 0;

    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
    for (size_t at = 0; at < terminal.restore_length && written >= 0; at += (size_t)written)
        written = write(STDOUT_FILENO, terminal.restore + at, terminal.restore_length - at);
    for (size_t i = 0; i < array_size(ending); i++)
        if (ending[i] == number)
            sigaction(number, &ending_before[i], NULL);
    raise(number);
}

static void take_note(int number)
{
    int saved = errno;

    if (number == SIGTSTP)
        terminal.stop = 1;
    else
        terminal.redraw = 1;
    if (write(terminal.wake_fd, "s", 1) < 0)
        terminal.redraw = 1; /* the pipe is full: it is awake */
    errno = saved;
}

static void handle(int number, void (*handler)(int), struct sigaction *before)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = handler == take_note ? SA_RESTART : 0};

    sigfillset(&action.sa_mask);
    sigaction(number, &action, before);
}

static void handle_signals(void)
{
    for (size_t i = 0; i < array_size(ending); i++) {
        handle(ending[i], give_back_and_end, &ending_before[i]);
        if (ending_before[i].sa_handler == SIG_IGN) /* as nohup has it */
            sigaction(ending[i], &ending_before[i], NULL);
    }
    handle(SIGWINCH, take_note, NULL);
    handle(SIGTSTP, take_note, NULL);
    handle(SIGCONT, take_note, NULL);
}

/* ---- Opening and closing ---- */

static char *restore_text;
static size_t restore_capacity;

static int keep_byte(int c)
{
    array_reserve(restore_text, restore_capacity, terminal.restore_length + 1);
    restore_text[terminal.restore_length++] = (char)c;
    return c;
}

static void keep_capability(const char *name)
{
    char *text = tigetstr(name);

    if (text && text != (char *)-1)
        tputs(text, 1, keep_byte);
}

/* Attributes off, the keypad as it was, the cursor there and below all else, the screen from before. */
static void prepare_restoring(void)
{
    static const char *const names[] = {"sgr0", "op", "rmkx", "cnorm", "clear", "rmcup"};

    for (size_t i = 0; i < array_size(names); i++)
        keep_capability(names[i]);
    terminal.restore = restore_text;
}

static bool can_move_cursor(void)
{
    char *text = tigetstr("cup");

    return text && text != (char *)-1;
}

/* "xterm-kitty" behaves like "xterm", if anything is known of that. */
static bool set_up(const char *name, char note[sizeof(struct error)])
{
    CLEANUP(free_ptr) char *shorter = xstrdup(name);
    int status;
    char *dash;

    if (setupterm(name, STDOUT_FILENO, &status) == OK)
        return true;
    while ((dash = strrchr(shorter, '-'))) {
        *dash = '\0';
        if (setupterm(shorter, STDOUT_FILENO, &status) != OK)
            continue;
        snprintf(note, sizeof(struct error), "TERM '%s' is not known here: used as '%s'", name, shorter);
        setenv("TERM", shorter, 1);
        return true;
    }
    return false;
}

static void begin_drawing(void)
{
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    terminal.keys = newpad(1, 1);
    keypad(terminal.keys, TRUE);
    nodelay(terminal.keys, TRUE);
    set_escdelay(25);
    curs_set(0);
    terminal.colours = term_colour(stdout) && has_colors() && start_color() == OK;
    if (terminal.colours) {
        short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
        init_pair(STYLE_GREEN, COLOR_GREEN, background);
        init_pair(STYLE_YELLOW, COLOR_YELLOW, background);
        init_pair(STYLE_RED, COLOR_RED, background);
        init_pair(STYLE_BLUE, COLOR_CYAN, background);
    }
}

int top_screen_open(int wake_fd, char note[sizeof(struct error)], struct error *err)
{
    const char *name = getenv("TERM");

    *note = '\0';
    if (!name || !*name)
        return error_set(err, ENOTTY, "TERM is not set: it names the type of the terminal, such as xterm-256color");
    if (!set_up(name, note))
        return error_set(err, ENOTTY,
                         "the terminal type '%.60s' (TERM) is not known here: set TERM to one that is, such as xterm "
                         "or vt100, or install the package ncurses-term",
                         name);
    if (!can_move_cursor())
        return error_set(err, ENOTTY,
                         "a terminal of the type '%.60s' (TERM) cannot move its cursor: use carma queue --watch there",
                         name);
    if (tcgetattr(STDIN_FILENO, &terminal.before))
        return error_set(err, ENOTTY, "cannot read the terminal's settings: %s", strerror(errno));
    terminal.wake_fd = wake_fd;
    prepare_restoring();
    handle_signals(); /* before ncurses, which leaves handlers alone that are there */
    use_env(FALSE);   /* the size is the terminal's, not that of COLUMNS */
    del_curterm(cur_term);
    setlocale(LC_CTYPE, ""); /* ncurses draws the characters of the locale */
    terminal.screen = newterm(NULL, stdout, stdin);
    if (!terminal.screen)
        return error_set(err, ENOTTY, "ncurses cannot use a terminal of the type '%.60s' (TERM)", name);
    begin_drawing();
    terminal.redraw = 1;
    top_screen_catch_up();
    return 0;
}

void top_screen_close(void)
{
    if (!terminal.screen)
        return;
    endwin();
    delwin(terminal.keys);
    delscreen(terminal.screen);
    terminal.screen = NULL;
    for (size_t i = 0; i < array_size(ending); i++)
        sigaction(ending[i], &ending_before[i], NULL);
    signal(SIGWINCH, SIG_DFL);
    signal(SIGTSTP, SIG_DFL);
    signal(SIGCONT, SIG_DFL);
    free_ptr(&restore_text);
}

/* ---- While it runs ---- */

static void stop_here(void)
{
    endwin();
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP); /* here it is until SIGCONT comes */
    handle(SIGTSTP, take_note, NULL);
    terminal.redraw = 1;
}

void top_screen_catch_up(void)
{
    struct winsize size;

    if (terminal.stop) {
        terminal.stop = 0;
        stop_here();
    }
    if (!terminal.redraw)
        return;
    terminal.redraw = 0;
    reset_prog_mode(); /* the shell may have changed it meanwhile */
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
        resizeterm(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
}

void top_screen_size(size_t *width, size_t *height)
{
    *width = (size_t)getmaxx(stdscr);
    *height = (size_t)getmaxy(stdscr);
}

static attr_t attributes_of(const struct top_screen *screen, const struct top_line *line, enum term_style style)
{
    static const attr_t of_kind[] = {
        [TOP_PLAIN] = 0,
        [TOP_TITLE] = A_UNDERLINE,
        [TOP_TITLE_FOCUSED] = A_UNDERLINE | A_BOLD,
        [TOP_SELECTED] = A_REVERSE,
        [TOP_ALARM] = A_REVERSE | A_BOLD,
    };
    attr_t attributes = of_kind[line->kind];

    if (screen->stale && line->kind != TOP_ALARM)
        return (line->kind == TOP_SELECTED ? A_REVERSE : 0) | A_DIM;
    if (style == STYLE_BOLD && line->kind != TOP_TITLE)
        return attributes | A_BOLD;
    if (style == STYLE_DIM)
        return attributes | A_DIM;
    if (terminal.colours && style >= STYLE_GREEN && line->kind != TOP_SELECTED)
        return attributes | (attr_t)COLOR_PAIR((short)style);
    return !terminal.colours && style == STYLE_RED ? attributes | A_BOLD : attributes;
}

static void paint_line(const struct top_screen *screen, size_t row)
{
    const struct top_line *line = &screen->lines[row];

    attrset(A_NORMAL);
    move((int)row, 0);
    for (size_t i = 0; i < line->count; i++) {
        attrset(attributes_of(screen, line, line->spans[i].style));
        addstr(line->spans[i].text);
    }
    attrset(line->kind == TOP_PLAIN ? A_NORMAL : attributes_of(screen, line, STYLE_NONE));
    for (size_t column = line->width; column < screen->width; column++)
        addch(' ');
}

void top_screen_paint(const struct top_screen *screen)
{
    erase();
    for (size_t row = 0; row < screen->height; row++)
        paint_line(screen, row);
    refresh();
}

bool top_screen_key(uint32_t *key)
{
    static const struct {
        int code;
        uint32_t key;
    } keys[] = {
        {KEY_UP, TOP_KEY_UP},           {KEY_DOWN, TOP_KEY_DOWN},           {KEY_PPAGE, TOP_KEY_PAGE_UP},
        {KEY_NPAGE, TOP_KEY_PAGE_DOWN}, {KEY_HOME, TOP_KEY_HOME},           {KEY_END, TOP_KEY_END},
        {KEY_BTAB, TOP_KEY_TAB_BACK},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE}, {KEY_ENTER, '\n'},
    };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    wint_t c;
    int kind = wget_wch(terminal.keys, &c);

    *key = 0;
    if (kind == ERR)
        return poll(&input, 1, 0) <= 0 || !(input.revents & (POLLHUP | POLLERR | POLLNVAL));
    if (kind == OK)
        *key = (uint32_t)c;
    for (size_t i = 0; kind == KEY_CODE_YES && i < array_size(keys); i++)
        if (keys[i].code == (int)c)
            *key = keys[i].key;
    return true;
}
