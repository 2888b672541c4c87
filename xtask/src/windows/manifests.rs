//! The manifests of winget and scoop, filled from the templates in `xtask/packaging`.

/// What is only known once there is an archive.
pub(super) struct Release {
    /// Of the archive, in hexadecimal.
    pub(super) sha256: String,
}

impl Release {
    /// Each manifest with its path.
    pub(super) fn manifests(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        TEMPLATES.iter().map(|(name, template)| (*name, self.fill(template)))
    }

    fn fill(&self, template: &str) -> String {
        let licences = env!("CARGO_PKG_LICENSE");
        [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("repository", env!("CARGO_PKG_REPOSITORY").to_owned()),
            ("license", licences.to_owned()),
            // As scoop writes a choice.
            ("licenses", licences.replace(" OR ", "|")),
            ("url", url()),
            ("sha256", self.sha256.clone()),
            ("SHA256", self.sha256.to_uppercase()),
        ]
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{{{name}}}}}"), value)
        })
    }
}

/// Where the archive of this version will be.
pub(super) fn url() -> String {
    let (repository, version) = (env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION"));
    format!("{repository}/releases/download/v{version}/{}", archive_name())
}

/// The archive of this version.
pub(super) fn archive_name() -> String {
    format!("linerate-{}-windows-x86_64.zip", env!("CARGO_PKG_VERSION"))
}

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../packaging/", $name)))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = templates![
    "winget/linerate.linerate.yaml",
    "winget/linerate.linerate.installer.yaml",
    "winget/linerate.linerate.locale.en-US.yaml",
    "scoop/linerate.json",
];
