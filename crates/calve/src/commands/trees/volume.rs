use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_receipt::human::size;
use calve_receipt::{VolumeProblem, VolumeReceipt, VolumesReceipt, path};
use calve_volume::{Error, NewVolume, Problem, VolumePlan, VolumeState, Volumes, WayToRoot};

use crate::cli::volume::{CreateArguments, MountArguments, Output, VolumeCommand};
use crate::failure::{FAILED, Failure, REFUSED};
use crate::host::Program;
use crate::{consent, output, wording};

pub(crate) fn run(command: &VolumeCommand, cancel: &CancelToken) -> Result<(), Failure> {
    let volumes = Volumes::at(&calve_env::required_home(&Program, "volumes")?);
    let done = match command {
        VolumeCommand::Create(arguments) => create(&volumes, arguments),
        VolumeCommand::List { json } => list(&volumes, *json),
        VolumeCommand::Attach(arguments) => attach(&volumes, arguments),
        VolumeCommand::Detach(arguments) => detach(&volumes, arguments),
        VolumeCommand::Grow { name, size, output } => grow(&volumes, name, *size, output),
        VolumeCommand::Remove { name, yes, output } => remove(&volumes, name, *yes, output),
        VolumeCommand::Doctor { name, output } => doctor(&volumes, name.as_deref(), output, cancel),
    };
    // Ctrl-C also reaches mkfs.btrfs, mount and sudo, and interrupts fallocate(2).
    done.map_err(|failure| match cancel.is_cancelled() {
        true => Failure::interrupted("run it again: it finishes or removes what this run began"),
        false => failure,
    })
}

fn create(volumes: &Volumes, arguments: &CreateArguments) -> Result<(), Failure> {
    let CreateArguments { name, size: bytes, at, sparse, output } = arguments;
    let at = at.as_deref().map(std::path::absolute).transpose()?;
    let new = NewVolume { bytes: *bytes, at, is_sparse: *sparse };
    let listed = volumes.look(volumes.create(name, &new)?)?;
    output::note(&format!("made the volume {name} of {}; mount it: calve volume attach {name}", size(listed.bytes)));
    output::json_if(output.json, &VolumesReceipt { volumes: vec![receipt(&listed)] })
}

fn list(volumes: &Volumes, json: bool) -> Result<(), Failure> {
    let mut receipts = Vec::new();
    let mut lines = String::new();
    for name in volumes.names()? {
        let receipt = match volumes.find(&name) {
            Ok(volume) => {
                let listed = volumes.look(volume)?;
                let (bytes, taken) = (size(listed.bytes), size(listed.allocated_bytes));
                let state = if listed.is_attached { "attached" } else { "detached" };
                let at = ShownPath(&listed.volume.mount_point);
                lines.push_str(&format!("{name:<16} {state:<9} {bytes:>9}, {taken:>9} on disk  {at}\n"));
                receipt(&listed)
            }
            Err(Error::Unusable { problem, .. }) => {
                lines.push_str(&format!("{name:<16} damaged: {problem}\n"));
                VolumeReceipt { problems: vec![finding(&problem, false)], name, ..VolumeReceipt::default() }
            }
            Err(error) => return Err(error.into()),
        };
        receipts.push(receipt);
    }
    output::json_or(json, &VolumesReceipt { volumes: receipts }, &lines)
}

fn attach(volumes: &Volumes, arguments: &MountArguments) -> Result<(), Failure> {
    let plan = volumes.attach(&arguments.name)?;
    if arguments.print {
        return print(&plan);
    }
    let listed = carry_out(plan, "attaching a volume")?;
    let (free, demand) = (listed.host_free_bytes, listed.demand_bytes());
    if demand > free {
        let (free, demand) = (size(free), size(demand));
        output::warn(&format!(
            "the disk has {free} free, and the volume could take {demand} more; it becomes read-only when the disk is full"
        ));
    }
    if arguments.output.json {
        return output::json_if(true, &VolumesReceipt { volumes: vec![receipt(&listed)] });
    }
    output::path(&listed.volume.mount_point)
}

fn detach(volumes: &Volumes, arguments: &MountArguments) -> Result<(), Failure> {
    let plan = volumes.detach(&arguments.name)?;
    if arguments.print {
        return print(&plan);
    }
    let listed = carry_out(plan, "detaching a volume")?;
    output::note(&format!("detached the volume {}", arguments.name));
    output::json_if(arguments.output.json, &VolumesReceipt { volumes: vec![receipt(&listed)] })
}

fn grow(volumes: &Volumes, name: &str, bytes: u64, output: &Output) -> Result<(), Failure> {
    volumes.grow(name, bytes)?;
    let mut listed = volumes.look(volumes.find(name)?)?;
    if listed.is_attached {
        listed = carry_out(volumes.attach(name)?, "growing an attached volume")?;
    }
    output::note(&format!("the volume {name} has {}", size(listed.bytes)));
    output::json_if(output.json, &VolumesReceipt { volumes: vec![receipt(&listed)] })
}

fn remove(volumes: &Volumes, name: &str, yes: bool, output: &Output) -> Result<(), Failure> {
    if !yes {
        let taken = match volumes.find(name) {
            Err(error @ (Error::NotFound(_) | Error::BadName(_))) => return Err(error.into()),
            found => found.and_then(|volume| volumes.look(volume)),
        };
        let taken =
            taken.map_or_else(|_| String::new(), |listed| format!(", {} on disk", size(listed.allocated_bytes)));
        let question = format!("Delete the volume {name} with everything in it{taken}?");
        let refused = format!("the volume `{name}` is still there");
        consent::require(false, &question, &refused, "`--yes` deletes it without asking")?;
    }
    let freed_bytes = volumes.remove(name)?;
    output::note(&format!("deleted the volume {name}, which took up {}", size(freed_bytes)));
    output::json_if(output.json, &VolumesReceipt { volumes: Vec::new() })
}

fn doctor(volumes: &Volumes, name: Option<&str>, output: &Output, cancel: &CancelToken) -> Result<(), Failure> {
    let names = name.map_or_else(|| volumes.names(), |name| Ok(vec![name.to_owned()]))?;
    let mut receipts = Vec::new();
    let mut is_well = true;
    for name in names {
        let findings = examine(volumes, &name, cancel)?;
        is_well &= findings.iter().all(|(_, is_repaired)| *is_repaired);
        for (problem, is_repaired) in &findings {
            match is_repaired {
                true => output::note(&format!("{name}: repaired: {problem}")),
                false => output::error(
                    &format!("the volume `{name}`: {problem}"),
                    Some(&wording::volume::advice(problem, &name)),
                ),
            }
        }
        if findings.is_empty() {
            output::note(&format!("{name}: nothing is wrong"));
        }
        let mut receipt = match volumes.find(&name) {
            Ok(volume) => receipt(&volumes.look(volume)?),
            Err(_) => VolumeReceipt { name, ..VolumeReceipt::default() },
        };
        receipt.problems = findings.iter().map(|(problem, is_repaired)| finding(problem, *is_repaired)).collect();
        receipts.push(receipt);
    }
    output::json_if(output.json, &VolumesReceipt { volumes: receipts })?;
    if is_well { Ok(()) } else { Err(Failure::reported(FAILED)) }
}

/// Examines a volume, repairs it if possible, and examines it again. Returns each problem found, true if repaired.
fn examine(volumes: &Volumes, name: &str, cancel: &CancelToken) -> Result<Vec<(Problem, bool)>, Failure> {
    let before = volumes.examine(name)?;
    let is_damaged = before.iter().any(|problem| !problem.is_repairable() && !problem.is_mild());
    if is_damaged || !before.iter().any(Problem::is_repairable) {
        return Ok(before.into_iter().map(|problem| (problem, false)).collect());
    }
    if volumes.look(volumes.find(name)?)?.is_attached {
        let plan = volumes.attach(name)?;
        // Without the user's consent, still report the faults.
        match way_to_root(&plan).map(|way| plan.carry_out(way)) {
            Some(Err(error @ Error::NotPermitted { .. })) if !cancel.is_cancelled() => {
                output::failure(&error.into());
            }
            carried_out => _ = carried_out.transpose()?,
        }
    }
    let after = volumes.examine(name)?;
    let repaired: Vec<bool> = before.iter().map(|problem| !after.contains(problem)).collect();
    Ok(before.into_iter().zip(repaired).collect())
}

fn carry_out(plan: VolumePlan<'_>, what: &str) -> Result<VolumeState, Failure> {
    let Some(way) = way_to_root(&plan) else {
        let text = format!("{what} needs root");
        return Err(Failure::stated(REFUSED, text, "run those commands as root, then this one again"));
    };
    Ok(plan.carry_out(way)?)
}

/// Returns how to run the plan's commands, if any. Without root or consent, shows them and returns `None`.
fn way_to_root(plan: &VolumePlan<'_>) -> Option<Option<WayToRoot>> {
    if plan.commands.is_empty() {
        return Some(None);
    }
    let asked = |way: &WayToRoot| {
        *way == WayToRoot::IsRoot
            || consent::can_ask() && {
                show(plan);
                consent::yes(&format!("Run this by {}?", way.program()))
            }
    };
    let way = WayToRoot::here().filter(asked);
    if way.is_none() {
        show(plan);
    }
    way.map(Some)
}

fn show(plan: &VolumePlan<'_>) {
    for command in &plan.commands {
        output::prompt(&format!("    {command}"));
    }
}

fn print(plan: &VolumePlan<'_>) -> Result<(), Failure> {
    let lines: Vec<u8> = plan.commands.iter().flat_map(|command| [command.line(), b"\n".to_vec()].concat()).collect();
    output::bytes(&lines)
}

fn receipt(listed: &VolumeState) -> VolumeReceipt {
    VolumeReceipt {
        name: listed.volume.name.clone(),
        uuid: Some(listed.volume.uuid.clone()),
        image: Some(path(&listed.volume.image)),
        mount_point: Some(path(&listed.volume.mount_point)),
        attached: listed.is_attached,
        devices: listed.devices.iter().map(path).collect(),
        // Zero means a missing image: a real one holds at least a file system.
        size_bytes: Some(listed.bytes).filter(|bytes| *bytes > 0),
        allocated_bytes: (listed.bytes > 0).then_some(listed.allocated_bytes),
        host_free_bytes: Some(listed.host_free_bytes),
        problems: Vec::new(),
    }
}

fn finding(problem: &Problem, repaired: bool) -> VolumeProblem {
    VolumeProblem { code: problem.code(), message: problem.to_string(), repaired }
}
