use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::confirmation::Confirmations;
use super::documents::{self, Problem};
use super::program::Program;
use super::repositories::{Repositories, worktree};
use crate::configuration::Agent;

pub(super) struct Server {
    pub(super) repositories: Repositories,
    pub(super) program: Program,
    pub(super) confirmations: Confirmations,
}

/// A tool call with checked arguments.
pub(super) struct Call<'a> {
    pub(super) server: &'a Server,
    pub(super) arguments: &'a Arguments,
    pub(super) repository: &'a Path,
    pub(super) maker: &'a str,
}

impl Call<'_> {
    pub(super) async fn run(&self, tool: &str) -> Result<Value, Problem> {
        match tool {
            "list_worktrees" => self.list().await,
            "create_worktree" => self.create().await,
            "worktree_status" => self.listed(&self.named()?).await,
            "remove_worktree" => self.remove().await,
            "database_url" => self.database_url().await,
            "reset_database" => self.reset().await,
            _ => self.disk_usage().await,
        }
    }

    async fn json(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Value, Problem> {
        self.server.program.json(directory, arguments).await
    }

    async fn worktrees(&self) -> Result<Vec<Value>, Problem> {
        Ok(documents::list(&self.json(self.repository, &["worktree", "list", "--json"]).await?, "worktrees"))
    }

    async fn services(&self, path: &Path) -> Result<Vec<Value>, Problem> {
        Ok(documents::list(&self.json(path, &["status", "--json"]).await?, "services"))
    }

    async fn list(&self) -> Result<Value, Problem> {
        let without_head = |mut worktree: Value| {
            worktree["head"] = Value::Null;
            documents::worktree(&worktree)
        };
        let worktrees = self.worktrees().await?.into_iter().skip(self.arguments.number("skip").unwrap_or(0));
        Ok(json!({ "worktrees": worktrees.map(without_head).collect::<Vec<_>>() }))
    }

    async fn create(&self) -> Result<Value, Problem> {
        let place = match self.arguments.text("from") {
            Some(from) => worktree(self.repository, from)?,
            None => self.repository.to_path_buf(),
        };
        let mut question = json!({ "cwd": place.to_str(), "name": self.arguments.required("branch") });
        if let Some(base) = self.arguments.text("base") {
            question["base_ref"] = base.into();
        }
        let maker = maker_word(self.maker);
        let line = ["hook", "worktree-create", "--maker", &maker];
        let printed = self.server.program.run(&place, &line, question.to_string().as_bytes()).await?;
        let path = String::from_utf8_lossy(printed.stdout.trim_ascii_end()).into_owned();
        let mut made = self.listed(Path::new(&path)).await?;
        let prose = String::from_utf8_lossy(&printed.stderr);
        let notes: Vec<&str> = prose.lines().take(20).collect();
        if !notes.is_empty() {
            made["notes"] = json!(notes);
        }
        Ok(made)
    }

    async fn listed(&self, path: &Path) -> Result<Value, Problem> {
        let worktrees = self.worktrees().await?;
        let found = worktrees.iter().find(|one| one["path"].as_str().is_some_and(|text| Path::new(text) == path));
        let gone = || Problem::new("the worktree is gone", "list_worktrees has the names of all");
        found.map(documents::worktree).ok_or_else(gone)
    }

    async fn remove(&self) -> Result<Value, Problem> {
        let path = self.named()?;
        let would_remove = self.listed(&path).await?;
        // A commit since the announcement changes the plan, so it needs a new token.
        let head = would_remove["head"].as_str().unwrap_or_default();
        let plan = format!("remove {} at {head}", path.display());
        let line = |rest: &'static [&'static str]| {
            let words = ["worktree", "remove", "--json"].iter().chain(rest).map(OsStr::new);
            words.chain([OsStr::new("--"), path.as_os_str()]).map(OsStr::to_owned).collect::<Vec<_>>()
        };
        let Some(token) = self.arguments.text("token") else {
            let moves_aside = documents::moved_aside(&self.json(self.repository, &line(&["--dry-run"])).await?);
            let mut result = json!({ "would_remove": would_remove });
            if !moves_aside.is_empty() {
                result["moves_aside"] = moves_aside.into();
            }
            result["token"] = self.server.confirmations.announce(plan)?.into();
            result["next"] = "call again with this token to remove it".into();
            return Ok(result);
        };
        self.server.confirmations.confirm(token, &plan)?;
        Ok(documents::removed(&self.json(self.repository, &line(&[])).await?))
    }

    async fn database_url(&self) -> Result<Value, Problem> {
        let path = self.named()?;
        let wanted = self.arguments.text("service");
        let is_wanted = |service: &Value| wanted.is_none_or(|wanted| service["name"] == wanted);
        let unknown =
            || Problem::new("the worktree has no such service", "[services.NAME] in .calve.toml names services");
        // Check before anything is cloned or started.
        if wanted.is_some() && !self.services(&path).await?.iter().any(is_wanted) {
            return Err(unknown());
        }
        let up = documents::list(&self.json(&path, &["up", "--quiet", "--json"]).await?, "services");
        let services: Vec<Value> = up.iter().filter(|service| is_wanted(service)).map(documents::service).collect();
        if services.is_empty() { Err(unknown()) } else { Ok(json!({ "services": services })) }
    }

    async fn reset(&self) -> Result<Value, Problem> {
        let path = self.named()?;
        let services = self.services(&path).await?;
        let name = match (self.arguments.text("service"), &services[..]) {
            (Some(name), _) => name,
            (None, [only]) => only["name"].as_str().unwrap_or_default(),
            (None, _) => return Err(Problem::new("the worktree has no service, or several", "name it as `service`")),
        };
        let found = services.iter().find(|one| one["name"] == name && one["state"] != "absent");
        let found = found.ok_or_else(|| {
            Problem::new("the worktree has no data of such a service", "database_url clones it from the template")
        })?;
        let [template, server] = ["reset_template", "server"].map(|part| found[part].as_str().unwrap_or_default());
        let plan = format!("reset {name} in {} from {server} to {template}", path.display());
        let Some(token) = self.arguments.text("token") else {
            let token = self.server.confirmations.announce(plan)?;
            let next = "call again with this token; what was written to it is lost then";
            return Ok(json!({
                "would_reset": name, "worktree": path.to_str(), "template": template, "token": token, "next": next
            }));
        };
        self.server.confirmations.confirm(token, &plan)?;
        let done = self.json(&path, &["reset", "--yes", "--quiet", "--json", "--", name]).await?;
        let reset = documents::list(&done, "services").iter().find(|one| one["name"] == name).map(documents::service);
        Ok(json!({ "reset": reset }))
    }

    async fn disk_usage(&self) -> Result<Value, Problem> {
        let path = self.named()?;
        let services = self.services(&path).await?;
        let data = services.iter().filter_map(|service| service["data_directory"].as_str()).map(OsStr::new);
        let line: Vec<&OsStr> =
            ["du", "--json", "--"].map(OsStr::new).into_iter().chain([path.as_os_str()]).chain(data).collect();
        Ok(documents::disk_usage(path.to_str(), &self.json(self.repository, &line).await?))
    }

    fn named(&self) -> Result<PathBuf, Problem> {
        worktree(self.repository, self.arguments.required("worktree"))
    }
}

/// Returns the agent's name: a known one if the client's name begins with it.
fn maker_word(client: &str) -> String {
    let client = client.to_ascii_lowercase();
    let known = Agent::NAMES.iter().find(|known| client.starts_with(**known));
    let word =
        || client.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect::<String>();
    match known.map_or_else(word, ToString::to_string).trim_start_matches('-') {
        "" => "agent".to_owned(),
        word => word.to_owned(),
    }
}
