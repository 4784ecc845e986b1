//! Marks: states of a server to go back to. Each is a template in the server's slot, and goes with the server.
//!
//! The server is shut down cleanly, its data directory cloned, and the server restarted. So the engine itself calls a
//! mark complete, and starts on it without a recovery. Sessions are cut off, with their uncommitted work.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::RemovalWait;
use calve_core::internal::ShownPath;

use super::requests::is_closed;
use super::{END_ON_A_FULL_DISK, End, ORDERLY_END, PresentData, Supervisor};
use crate::error::{EndReason, Error, Remedy, Result, UnusableData};
use crate::files::directory::Directory;
use crate::files::log;
use crate::files::private::{self, CLOSED};
use crate::files::random;
use crate::files::trash;
use crate::registry::template::{self, DatabaseTemplate, manifest};
use crate::registry::{self, mark, name};
use crate::server::launch::data::clone_data;
use crate::server::launch::{ResetData, unless_left};
use crate::server::messages::{Answer, Origin, Request, send};
use crate::server::sweep;
use crate::service::LossRule;
use crate::sys;

impl Supervisor<'_> {
    pub(super) fn origin_named(&self, mark: Option<&str>) -> Result<Origin> {
        let Some(name) = mark else { return Ok(self.own.spec()?.origin.clone()) };
        let slot = self.mark_named(name)?;
        match template::read(&slot)? {
            Some(_) => Ok(Origin::Template(slot)),
            None => Err(mark::unknown(&self.record.server.name, name)),
        }
    }

    fn mark_named(&self, name: &str) -> Result<PathBuf> {
        name::check(name)?;
        Ok(mark::directory(&self.own.spec()?.slot).join(name))
    }

    /// Keeps the present state. The server goes on. If it cannot be restarted, it is down, but the mark and the data
    /// stay: the next request for a mark starts it.
    pub(super) fn mark(&mut self, name: &str, from: &mut UnixStream) -> Result<Option<End>> {
        let at = self.mark_named(name)?;
        if at.exists() {
            let (server, mark) = (self.record.server.name.clone(), name.to_owned());
            let text = format!("the server `{server}` already has a mark `{mark}`");
            return Err(Error::failed(text, Remedy::RemoveMark { server, mark }));
        }
        self.ask_to_end(LossRule::Refuse).map_err(|error| self.with_log(error))?;
        self.prepared.forget();
        // Stop requests come before all others.
        let is_stop = |request: &Request| matches!(request, Request::Stop | Request::StopAnyway);
        let stop = |supervisor: &mut Self| supervisor.requests.next_of(is_stop).map(|(_, from)| End::Asked(from));
        let ended = match self.await_end(stop) {
            Ok(Some(stopped)) => {
                let _ = send(from, &Answer::failed(Error::StoppedMeanwhile(self.record.server.name.clone())));
                return Ok(Some(stopped));
            }
            Ok(None) if is_closed(from) => Err(Error::Interrupted),
            ended => ended,
        };
        let kept = ended.and_then(|_| unless_left(&self.owners(), self.cancel, || self.keep(name, &at)));
        if self.cancel.is_cancelled() {
            let _ = send(from, &Answer::failed(Error::Interrupted));
            return Ok(Some(End::Unasked(EndReason::OwnerEnded)));
        }
        // Before the next server writes to the log.
        let kept = kept.map_err(|error| self.with_log(error));
        if let Err(error) = self.resume() {
            return Err(self.go_down(&self.with_log(error), PresentData::Whole));
        }
        let is_kept = kept.is_ok();
        let answer = kept.map_or_else(Answer::failed, |mark| Answer::Marked(Box::new(mark)));
        let is_answered = send(from, &answer).is_ok();
        if is_kept && !is_answered {
            // No caller wants it any more.
            let _ = self.unmark(name);
        }
        self.prepared.wanted = Some(if is_kept && is_answered { Origin::Template(at) } else { self.origin.clone() });
        Ok(None)
    }

    fn keep(&self, name: &str, at: &Path) -> Result<DatabaseTemplate> {
        let marks = mark::directory(&self.own.spec()?.slot);
        private::make_directory(&marks, CLOSED)?;
        let staged = marks.join(format!(".new-{}", random::letters(6)?));
        let made = self.keep_in(name, &staged).and_then(|mark| private::rename(&staged, at).map(|()| mark));
        made.map_err(|error| {
            let _ = trash::remove(&staged, RemovalWait::Yes);
            match error {
                Error::NotUsable { reason, .. } => {
                    let server = self.record.server.name.clone();
                    let text = format!("the server `{server}` cannot be marked: {reason}");
                    let leads_out = matches!(reason, UnusableData::LeadsOut(_));
                    Error::failed(text, if leads_out { Remedy::DropOutside } else { Remedy::ReadLog(server) })
                }
                other => other,
            }
        })
    }

    fn keep_in(&self, name: &str, staged: &Path) -> Result<DatabaseTemplate> {
        private::make_directory(staged, CLOSED)?;
        // The mark's lock, for servers on an overlay of it.
        registry::open_lock(staged)?;
        let data = staged.join(registry::DATA);
        clone_data(&self.directories.data()?, &data, self.cancel)?;
        self.engine.scrub(&data)?;
        let spec = self.own.spec()?;
        let unknown = || Error::server_failed("is of an unknown version");
        self.engine.examine(&data, &self.engine.version(&spec.program.version).ok_or_else(unknown)?)?;
        let (files, bytes) = manifest::write(staged)?;
        let mark = DatabaseTemplate::new(name, self.launched.found.program.clone(), staged)?;
        let mark = DatabaseTemplate {
            image: spec.container.as_ref().map(|container| container.image.clone()),
            key: format!("mark {}", mark.id),
            base: spec.record.server.template.clone(),
            files,
            bytes,
            ..mark
        };
        private::write_json(&staged.join(template::DOCUMENT), &mark)?;
        Ok(mark)
    }

    pub(super) fn resume(&mut self) -> Result<()> {
        self.kill();
        self.launched.seen.hide();
        let renewed = self.launch(&Origin::Present, &ResetData::ToClone)?;
        self.launched.server = renewed.server;
        self.launched.seen = renewed.seen;
        self.down = None;
        self.write_record()
    }

    /// Shuts the server down cleanly, with everything written. Gives up if the caller is gone.
    pub(super) fn finish(&mut self, asked: &UnixStream) -> Result<Option<End>> {
        self.ask_to_end(LossRule::Refuse)?;
        self.await_end(|_| is_closed(asked).then_some(End::Unasked(EndReason::OwnerEnded)))
    }

    /// Asks the server to shut down. After an error the server goes on as before.
    pub(super) fn ask_to_end(&self, unsaved: LossRule) -> Result<()> {
        let address = &self.record.server.address;
        let purpose = self.own.spec()?.purpose;
        if self.engine.ask_to_end(address, purpose, &self.directories.data()?)? {
            return Ok(());
        }
        if unsaved == LossRule::Refuse {
            // Without room PostgreSQL crashes when it has to write, even for a checkpoint, and MariaDB waits for room.
            let needs = if purpose.is_on_a_template() { self.engine.bytes_to_end() } else { log::LITTLE };
            self.check_room(needs)?;
        }
        if self.record.durable {
            self.engine.end_count(&self.directories.data()?, address);
        }
        self.launched.server.ask_to_end(self.engine.stop_signal())
    }

    fn check_room(&self, needs: u64) -> Result<()> {
        let files = self.own.spec()?.files();
        if !log::has_less_room(files, needs) {
            return Ok(());
        }
        let how = format!("needs more space to shut down cleanly than the disk of `{}` has", ShownPath(files));
        Err(Error::ServerFailed { how, log: String::new(), full: Some(files.to_path_buf()) })
    }

    /// Waits for the shutdown. Polls `other_end`, and returns early with any end that it finds.
    pub(super) fn await_end(&mut self, mut other_end: impl FnMut(&mut Self) -> Option<End>) -> Result<Option<End>> {
        let started = Instant::now();
        loop {
            match self.launched.server.ended() {
                Some(sys::ProcessEnd::Exit(0)) => return Ok(None),
                Some(other) => return Err(Error::server_failed(format!("did not shut down cleanly ({other})"))),
                None if started.elapsed() > ORDERLY_END => {
                    return Err(Error::server_failed(format!("did not end within {} s", ORDERLY_END.as_secs())));
                }
                None if started.elapsed() > END_ON_A_FULL_DISK => self.check_room(log::LITTLE)?,
                None => {}
            }
            if let Some(end) = other_end(self) {
                return Ok(Some(end));
            }
            sys::wait_for_any(self.launched.server.end(), Duration::from_millis(20));
        }
    }

    /// Removes a mark. Its files stay while the server needs them.
    pub(super) fn unmark(&mut self, name: &str) -> Result<()> {
        let at = self.mark_named(name)?;
        let marks = mark::directory(&self.own.spec()?.slot);
        sweep::found(Directory::open(&at))?.ok_or_else(|| mark::unknown(&self.record.server.name, name))?;
        let origin = Origin::Template(at.clone());
        self.prepared.wanted.take_if(|wanted| *wanted == origin);
        self.prepared.next.take_if(|next| next.origin == origin);
        let aside = marks.join(format!("{}{name}-{}", template::OLD, random::letters(6)?));
        private::rename(&at, &aside)?;
        sweep::delete_old_templates(&marks);
        Ok(())
    }
}
