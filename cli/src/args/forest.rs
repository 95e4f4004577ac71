//! The arguments of `weald forest`.

use std::path::PathBuf;

use clap::Subcommand;

/// The forest, and what is to be done with it.
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Forest {
    /// The directory in which a program has opened its forest
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Print JSON, one value per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The file of the master key, if the forest has one
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) master_key: Option<PathBuf>,
    /// Show erasable values that are damaged as erased. Without it, one of them keeps the forest closed
    #[arg(long, global = true)]
    pub(crate) skip_damaged_values: bool,
    #[command(subcommand)]
    pub(crate) command: Action,
}

const NOTES: &str = "All commands but `import` only read: they take no lock, change no file, and may run while a program \
has the forest open.
They see what is durable.

A NODE is its number (5), or its path from the root (-1,0,2; -1 is the root).
A MOMENT is a version, a time (2026-05-30, 2026-05-30T12:00:00Z), or a tag of the tree (tag:NAME).
A version is printed as 1795455258574854548.17: the opening of the forest, and the number of the commit. 17 alone is \
enough. The numbers rise, and each opening for writing skips about a million of them.
Erasable values are shown, but `find` does not search them. In JSON they are {\"erasable\": value}, and those that were \
erased are {\"erased\": \"1795798408\"}, in seconds since 1970.

Exit codes:
  0  all went well
  1  a failure, as of the disk
  2  a usage error
  3  the forest is damaged; the message names the file and the offset
  4  what was asked for is not there: the forest, the tree, the node, the moment
  5  another process has the forest open for writing (import)

Examples:
  weald forest data ls
  weald forest data tree notes --depth 2
  weald forest data log notes -n 5
  weald forest data diff notes 17 tag:printed
  weald forest data find notes author=Ada --json | jq .path
  weald forest data export notes | weald forest other import notes --create";

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List the trees
    Ls {
        /// Only those whose names begin with this
        #[arg(default_value = "")]
        prefix: String,
    },
    /// Draw a tree, or what is below a node of it
    Tree {
        /// The name of the tree
        name: String,
        #[command(flatten)]
        at: NodePlace,
        /// At most this many levels below that node
        #[arg(long, value_name = "LEVELS")]
        depth: Option<usize>,
    },
    /// Show a node with all its attributes
    Show {
        /// The name of the tree
        name: String,
        #[command(flatten)]
        at: NodePlace,
    },
    /// List commits, the newest first
    Log {
        /// Only those that changed this tree
        name: Option<String>,
        /// Only those that changed this node, as far as versions are kept
        #[arg(long, requires = "name", allow_hyphen_values = true)]
        node: Option<String>,
        /// At most this many; 0 for all
        #[arg(short, value_name = "N", default_value_t = 20)]
        n: usize,
    },
    /// Say what differs between two moments of a tree
    Diff {
        /// The name of the tree
        name: String,
        /// The older moment
        from: String,
        /// The newer moment [default: now]
        to: Option<String>,
    },
    /// Show the forest as it was: its trees, or one of them
    At {
        /// The moment
        moment: String,
        /// The tree that is to be drawn
        name: Option<String>,
    },
    /// Find nodes by the values of their attributes, except erasable ones
    Find {
        /// The name of the tree
        name: String,
        /// Conditions that a node must meet, all of them: NAME=VALUE, or NAME^=BEGINNING of the value
        #[arg(required = true, value_name = "NAME=VALUE")]
        terms: Vec<String>,
        /// At this moment [default: now]
        #[arg(long, value_name = "MOMENT")]
        at: Option<String>,
        /// At most this many nodes; 0 for all
        #[arg(short, value_name = "N")]
        n: Option<usize>,
    },
    /// Read everything, and say whether it is sound
    Check,
    /// Count trees, versions, nodes and bytes
    Stats,
    /// Print a tree as JSON, or every tree, each as one line with its name
    Export {
        /// The name of the tree [default: every tree]
        name: Option<String>,
        /// At this moment [default: now]
        #[arg(long, value_name = "MOMENT")]
        at: Option<String>,
        /// Print the JSON document that the tree was imported from
        #[arg(long, requires = "name")]
        document: bool,
        /// Print the XML document that the tree was imported from
        #[arg(long, requires = "name", conflicts_with = "document")]
        xml: bool,
    },
    /// Create trees from what `export` has printed. No other program may have the forest open. Nothing is imported from
    /// a text with a fault; each tree is printed once it is durable
    Import {
        /// The name of the new tree [default: what was printed for every tree]
        name: Option<String>,
        /// Where the text is [default: stdin]
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        /// Read any JSON document in place of an export
        #[arg(long, requires = "name")]
        document: bool,
        /// Read an XML document in place of an export
        #[arg(long, requires = "name", conflicts_with = "document")]
        xml: bool,
        /// Create the forest if there is none
        #[arg(long)]
        create: bool,
        /// Skip trees whose names are taken, to resume an interrupted import
        #[arg(long)]
        skip_existing: bool,
    },
}

/// A node, at a moment.
#[derive(Debug, clap::Args)]
pub(crate) struct NodePlace {
    /// The node [default: the root]
    #[arg(allow_hyphen_values = true)]
    pub(crate) node: Option<String>,
    /// At this moment [default: now]
    #[arg(long, value_name = "MOMENT")]
    pub(crate) at: Option<String>,
}
