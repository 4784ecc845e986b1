// Copies a tree with two threads and nothing but the calls that no copy can do without: read the directories, make them, and for each file open,
// create, share (copy where the file system shares nothing) and close. No attribute is kept and nothing is checked, so a program that takes
// as long as this one is as fast as the kernel lets it be.
//
// usage: bare SRC DST
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH 4096

static const char *source, *destination;
static char **directories;
static int count;
static atomic_int next;

static int is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static DIR *open_below(const char *root, const char *relative) {
    char path[PATH];
    snprintf(path, sizeof path, "%s%s", root, relative);
    DIR *directory = opendir(path);
    if (!directory) err(1, "%s", path);
    return directory;
}

/* Lists the directories, parents first. */
static void collect(const char *relative) {
    directories = realloc(directories, (count + 1) * sizeof *directories);
    if (!directories) err(1, NULL);
    directories[count++] = strdup(relative);
    DIR *directory = open_below(source, relative);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_type != DT_DIR || is_dots(entry->d_name)) continue;
        char below[PATH];
        snprintf(below, sizeof below, "%s/%s", relative, entry->d_name);
        collect(below);
    }
    closedir(directory);
}

static void copy_file(int from, int to, const char *name) {
    int reader = openat(from, name, O_RDONLY | O_NOFOLLOW), writer = openat(to, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (reader < 0 || writer < 0) err(1, "%s", name);
    if (ioctl(writer, FICLONE, reader)) {
        ssize_t copied;
        while ((copied = copy_file_range(reader, NULL, writer, NULL, 1 << 30, 0)) > 0);
        if (copied < 0) err(1, "%s", name);
    }
    close(reader);
    close(writer);
}

static void *work(void *unused) {
    for (int at; (at = atomic_fetch_add(&next, 1)) < count;) {
        DIR *from = open_below(source, directories[at]), *to = open_below(destination, directories[at]);
        for (struct dirent *entry; (entry = readdir(from));) {
            if (entry->d_type == DT_REG) copy_file(dirfd(from), dirfd(to), entry->d_name);
            if (entry->d_type != DT_LNK) continue;
            char target[PATH];
            ssize_t length = readlinkat(dirfd(from), entry->d_name, target, sizeof target - 1);
            if (length < 0) err(1, "%s", entry->d_name);
            target[length] = 0;
            if (symlinkat(target, dirfd(to), entry->d_name)) err(1, "%s", entry->d_name);
        }
        closedir(from);
        closedir(to);
    }
    return unused;
}

int main(int arguments, char **given) {
    if (arguments != 3) errx(2, "usage: bare SRC DST");
    source = given[1], destination = given[2];
    collect("");
    for (int at = 0; at < count; at++) {
        char path[PATH];
        snprintf(path, sizeof path, "%s%s", destination, directories[at]);
        if (mkdir(path, 0755)) err(1, "%s", path);
    }
    pthread_t threads[2];
    for (int at = 0; at < 2; at++) {
        if (pthread_create(&threads[at], NULL, work, NULL)) err(1, "thread");
    }
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
}
