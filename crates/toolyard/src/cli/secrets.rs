//! Arguments of `toolyard secrets`.

use clap::Subcommand;

use crate::config::secrets::KeyPlace;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  toolyard secrets set GITHUB_TOKEN                        asks for the value, without showing it
  pass show github | toolyard secrets set GITHUB_TOKEN     takes the value from another program
  toolyard servers edit github --set 'env.GITHUB_TOKEN=${secret:GITHUB_TOKEN}'
  toolyard secrets list                                    names, and the servers that use them
  toolyard secrets rotate-key --to file                    a new key, kept in a file

Settings of servers refer to a secret as ${secret:NAME}, and to a file such as /run/secrets/token as ${file:/run/secrets/token}. \
Secrets are encrypted. Their key is in the system's keychain, or without one in a file that only you can read; if the \
environment variable TOOLYARD_SECRETS_KEY is set, it holds the key. `toolyard import` stores the secrets of your editors' \
servers here.")]
pub(crate) enum SecretsCommand {
    /// Store a secret, or replace it
    ///
    /// The value is asked for at the terminal without showing it, or read from standard input. It is never an argument: other
    /// users of the machine can see arguments.
    Set {
        /// Name of the secret: letters, digits and _
        name: String,
    },
    /// List the names of secrets, where they are stored and which servers use them; never their values
    List,
    /// Remove a secret
    Remove {
        /// Name of the secret
        name: String,
        /// Remove it although servers refer to it
        #[arg(long)]
        force: bool,
    },
    /// Encrypt all secrets with a new key
    ///
    /// If TOOLYARD_SECRETS_KEY is set, it holds the new key; to replace one such key by another, set TOOLYARD_SECRETS_OLD_KEY to the old
    /// one.
    RotateKey {
        /// Where to keep the new key; by default as for new secrets: environment, else keychain, else file
        #[arg(long, value_name = "PLACE", value_enum)]
        to: Option<KeyPlace>,
    },
}
