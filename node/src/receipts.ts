// Generated from docs/schemas/receipts.json by `CALVE_REWRITE=1 cargo test -p calve-receipt`.
import type { CalveError } from './errors.js';

/** A path that is not UTF-8. */
export interface Undecodable {
  /** The bytes of the path in Base64. */
  bytes_base64: string;
}

/** A path as text. A path that is not UTF-8 is given as its bytes. */
export type ReceiptPath = string | Undecodable;

/** The name of a strategy. */
export type StrategyName = 'spare' | 'snapshot' | 'clonefile' | 'reflink' | 'copy' | 'hardlink' | 'overlay';

/** A strategy that was not used. */
export interface Refusal {
  /** The strategy. */
  strategy: StrategyName;
  /** The reason in a few words. */
  reason: string;
}

/** A clone that was made ahead of time and handed over. */
export interface Spare {
  /** When it was built, in seconds since 1970. */
  built_at: number;
  /** How it was made sure that it equals the source: `frozen` (the source is a template), `watched` (a watcher knows what has changed),
`walked` (every entry was compared with what was recorded of it). */
  checked: 'frozen' | 'watched' | 'walked';
  /** The number of entries that were looked at for that. */
  entries_checked: number;
  /** The number of entries that differed and were cloned again. */
  entries_updated: number;
}

/** The number of entries of each kind. */
export interface Entries {
  /** Directories, with the root. */
  directories: number;
  /** Regular files. Each inode counts once. */
  files: number;
  /** Symbolic links. */
  symlinks: number;
  /** Named pipes. */
  fifos: number;
  /** Character and block devices. */
  devices: number;
  /** Further names of files that `files` counts. */
  hard_links: number;
}

/** The contents of regular files, in bytes. */
export interface Bytes {
  /** The sum of the files' sizes. */
  apparent: number;
  /** Bytes that the clone shares with the source. */
  shared: number;
  /** Bytes that Calve wrote, without holes. */
  written: number;
  /** Bytes that the file system copied because it keeps them inside its metadata. Null if `shared` contains them. */
  inlined: number | null;
}

/** Files that were made in another way than the strategy's own. */
export interface FallBack {
  /** The way that was refused. */
  from: StrategyName;
  /** The way that was used. */
  to: StrategyName;
  /** The name of the system's error, such as `EXDEV`. */
  errno: string;
  /** The number of files. */
  files: number;
  /** The first of them, relative to the source. */
  first_path: ReceiptPath;
}

/** An entry that was left out. */
export interface SkippedEntry {
  /** The entry's path. */
  path: ReceiptPath;
  /** The reason in a few words. */
  reason: string;
}

/** Something that the user should know and that is not an error. */
export interface Warning {
  /** A stable word for programs. */
  code:
    | 'attribute_not_kept'
    | 'cache_not_written'
    | 'cache_unusable'
    | 'clonefile_drops'
    | 'deleted_in_place'
    | 'hard_link_not_kept'
    | 'list_truncated'
    | 'nested_subvolumes'
    | 'not_independent'
    | 'not_scrubbed'
    | 'not_swept'
    | 'old_not_removed'
    | 'owner_not_kept'
    | 'set_id_dropped'
    | 'sharing_unknown'
    | 'swept'
    | 'times_not_kept'
    | 'trash_stuck'
    | 'xattr_not_kept';
  /** The first path concerned. Absent if the warning is about no path. */
  path?: ReceiptPath;
  /** A sentence for people. */
  message: string;
}

/** The report of one clone. */
export interface CloneReceipt {
  /** The kind of document and the version of its shape. */
  schema: 'calve.clone/1';
  /** The source as given. */
  src: ReceiptPath;
  /** The destination as given. */
  dst: ReceiptPath;
  /** The strategy that was used. */
  strategy: StrategyName;
  /** The better strategies that were not used. */
  refused: Refusal[];
  /** The spare that was handed over. Absent if the clone was made when it was asked for. */
  spare?: Spare;
  /** The entries of the clone. Null if the strategy did not walk the tree. */
  entries: Entries | null;
  /** The contents of the regular files. Null if the strategy did not walk the tree. */
  bytes: Bytes | null;
  /** Files that were made in another way than the strategy's own. */
  fell_back: FallBack[];
  /** Entries that are not in the clone, with paths relative to the source. At most 10,000. */
  skipped: SkippedEntry[];
  /** Entries of the source that changed while they were cloned, relative to the source. At most 10,000. */
  changed: ReceiptPath[];
  /** Other facts that the user should know. */
  warnings: Warning[];
  /** The time in milliseconds from the start to the published clone. */
  elapsed_ms: number;
}

/** The report of one removal. */
export interface RemoveReceipt {
  /** The path as given. */
  path: ReceiptPath;
  /** The path at which the tree waits to be deleted. Null if it is deleted. */
  trash: ReceiptPath | null;
  /** The number of entries that were deleted so far. A btrfs subvolume is one, whatever is in it: it is deleted as a whole. */
  deleted_entries: number;
  /** Other facts that the user should know. */
  warnings: Warning[];
  /** The time that the removal took in milliseconds, without deletion in the background. */
  elapsed_ms: number;
}

/** A path and its file system. */
export interface Place {
  /** The path as given. */
  path: ReceiptPath;
  /** The type of the file system, such as `xfs`. */
  file_system: string;
  /** The device number as `major:minor`. */
  device: string;
}

/** A strategy and whether it can be used. */
export interface Offer {
  /** The strategy. */
  strategy: StrategyName;
  /** True if the strategy can be used. */
  available: boolean;
  /** Why the strategy is not available. Null if it is. */
  reason: string | null;
  /** The condition that would make the strategy available. Null if it is available or nothing would. */
  remedy: string | null;
}

/** The strategies that can be used between two directories. */
export interface ProbeReceipt {
  /** The kind of document and the version of its shape. */
  schema: 'calve.probe/1';
  /** The source. */
  src: Place;
  /** The destination. */
  dst: Place;
  /** The strategy that a clone would use. Null if nothing can be made at the destination. */
  chosen: StrategyName | null;
  /** All strategies, in order of preference. */
  strategies: Offer[];
}

/** The kind of an error. A later version may have more. */
export type ErrorCode =
  | 'ERR_CALVE_ABORTED'
  | 'ERR_CALVE_DB'
  | 'ERR_CALVE_DESTINATION_EXISTS'
  | 'ERR_CALVE_DESTINATION_INSIDE_SOURCE'
  | 'ERR_CALVE_EXISTS'
  | 'ERR_CALVE_GIT'
  | 'ERR_CALVE_INTERNAL'
  | 'ERR_CALVE_IO'
  | 'ERR_CALVE_IS_A_DIRECTORY'
  | 'ERR_CALVE_MISSING'
  | 'ERR_CALVE_NO_DEDUPE'
  | 'ERR_CALVE_NO_ROOM'
  | 'ERR_CALVE_NOT_A_DIRECTORY'
  | 'ERR_CALVE_NOT_A_FILE'
  | 'ERR_CALVE_NOT_CLONABLE'
  | 'ERR_CALVE_OTHER'
  | 'ERR_CALVE_OUTSIDE_ROOT'
  | 'ERR_CALVE_PARENT_MISSING'
  | 'ERR_CALVE_PATTERN'
  | 'ERR_CALVE_PERMISSION'
  | 'ERR_CALVE_PROTECTED'
  | 'ERR_CALVE_REGISTRY'
  | 'ERR_CALVE_REPLACE_UNSUPPORTED'
  | 'ERR_CALVE_REQUIREMENT_REFUSED'
  | 'ERR_CALVE_SAME'
  | 'ERR_CALVE_SOURCE_INSIDE_DESTINATION'
  | 'ERR_CALVE_STAGING_LOST'
  | 'ERR_CALVE_TEMPLATE'
  | 'ERR_CALVE_USAGE'
  | 'ERR_CALVE_VERIFY_FAILED'
  | 'ERR_CALVE_VOLUME';

/** Something in a worktree, or in its entry, that exists nowhere else. */
export interface UnsavedReceipt {
  /** Its kind. */
  kind:
    | 'uncommitted'
    | 'staged'
    | 'hidden'
    | 'in_submodule'
    | 'operation'
    | 'commits'
    | 'reflog'
    | 'reference'
    | 'unpushed'
    | 'locked'
    | 'repository_of'
    | 'orphaned'
    | 'unreadable'
    | 'misplaced'
    | 'inside'
    | 'ignored'
    | 'service';
  /** The repository, worktree or submodule inside that it is in. Absent if it is in the worktree itself. */
  inside?: ReceiptPath | null;
  /** The files concerned. Absent if there are none. */
  paths?: ReceiptPath[];
  /** The newest of the commits concerned. Absent if there are none. */
  commit?: string | null;
  /** How many commits there are, up to 1,000. Absent if there are none. */
  commits?: number | null;
  /** The size of ignored files. Absent for other kinds. */
  bytes?: number | null;
  /** True if `-f` is needed to remove it. Other items are moved aside. */
  needs_force: boolean;
  /** The item in words, for people. */
  text: string;
}

/** An error. Whoever talks to people words the `hint`, from the name of the `remedy`. */
export interface ErrorReceipt {
  /** The kind of document and the version of its shape. */
  schema: 'calve.error/1';
  /** A stable word for each kind of error. */
  code: ErrorCode;
  /** The error in one sentence, for people. */
  message: string;
  /** The system's error number: its own, or the closest. */
  errno: number | null;
  /** The name of that number, such as `ENOSPC`. */
  errno_name: string | null;
  /** The path that the error is about. */
  path: ReceiptPath | null;
  /** The operation that failed, in words. */
  operation: string | null;
  /** The next step, in words. */
  hint: string | null;
  /** The strategies that were refused, with their reasons. */
  refused: Refusal[] | null;
  /** A stable name of what to do next. */
  remedy: string | null;
  /** Everything in a worktree that exists nowhere else, if that is why it was not removed. Absent for other errors. */
  unsaved?: UnsavedReceipt[] | null;
}

/** A file that was not written. */
export interface WriteFailure {
  /** The index of the entry, counted from 0. */
  index: number;
  /** Why the file was not written. */
  error: CalveError;
}

/** The report of files that were written together. */
export interface WriteReceipt {
  /** The kind of document and the version of its shape. */
  schema: 'calve.write/1';
  /** The number of files written. Entries with one path may count once. */
  files: number;
  /** The size of their contents in bytes. */
  bytes: number;
  /** The number of directories made. */
  directories: number;
  /** The largest number of threads that worked at the same time. */
  threads: number;
  /** The files that were not written, if errors were to be collected. */
  failures: WriteFailure[];
  /** The time that writing took in milliseconds. */
  elapsed_ms: number;
}

/** A file of a data directory. */
export interface DbFile {
  /** The path, relative to the data directory. */
  path: ReceiptPath;
  /** The size in bytes. */
  bytes: number;
}

/** A database server. */
export interface DbServer {
  /** The name of the server. */
  name: string;
  /** The name of the engine, such as `postgres`. */
  engine: string;
  /** The template that the server was cloned from. Null if there is none. */
  template: string | null;
  /** The address as a URL, by the private socket. */
  url: string;
  /** The address as a URL, by TCP, with the password. Null without TCP. */
  tcp_url: string | null;
  /** The address for the engine's own programs. */
  dsn: string;
  /** The host for the engine's own programs. */
  host: string;
  /** The port, which for PostgreSQL is part of the socket's name. */
  port: number;
  /** The private socket. */
  socket: ReceiptPath;
  /** The superuser. */
  user: string;
  /** The password for TCP. Null without TCP. */
  password: string | null;
  /** A database that always exists. */
  database: string;
  /** The port on 127.0.0.1. Null without TCP. */
  tcp_port: number | null;
  /** The environment variables by which programs find this server and no other. Null: the variable must not be set. */
  environment?: Record<string, string | null>;
  /** The data directory. */
  data_directory: ReceiptPath;
  /** The id of the server's first process. Null if the server is down. */
  pid: number | null;
  /** The strategy by which the data directory was cloned; `init` if it was made anew. */
  strategy: 'spare' | 'snapshot' | 'clonefile' | 'reflink' | 'copy' | 'hardlink' | 'overlay' | 'init';
  /** The better strategies, and why they were not used. */
  refused: string[];
  /** Files that an overlay copies when the server first opens them for writing. */
  copied_on_first_open: DbFile[];
  /** How long cloning took, in milliseconds. Null if nothing was cloned for this start. */
  clone_ms: number | null;
  /** The time from the start of cloning to the first answer, in milliseconds. */
  ready_ms: number;
  /** The time of the start, in seconds since 1970. */
  started_unix_s: number;
  /** The time at which the server ends, in seconds since 1970. Null if it has no limit. */
  expires_unix_s: number | null;
  /** The process that the server ends with. Null if there is none. */
  owner_pid: number | null;
  /** True if the server was started ahead of time, and was waiting when it was asked for. Left out if not. */
  standby?: boolean;
  /** True if the server is down, because a reset or a mark could not start it again. Left out if not. */
  down?: boolean;
}

/** @internal */
export const STRATEGIES = ['spare', 'snapshot', 'clonefile', 'reflink', 'copy', 'hardlink'] as const;
/** A way to clone. */
export type Strategy = (typeof STRATEGIES)[number];

/** @internal */
export const REQUIREMENTS = ['instant', 'cow', 'stable'] as const;
/** A property without which no clone is made. */
export type Requirement = (typeof REQUIREMENTS)[number];
