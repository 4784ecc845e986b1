# What only Windows can show: run the program on a ReFS volume and on a Dev Drive, each in a virtual disk. For the workflow, as an
# administrator; it takes the drive letters R and S, and removes the disks at the end.
#
# usage: scripts/windows-refs.ps1 CALVE
param([Parameter(Mandatory)][string]$Calve)
$ErrorActionPreference = 'Stop'
$Calve = (Resolve-Path $Calve).Path
$disks = Join-Path ([IO.Path]::GetTempPath()) "calve-refs-$PID"
New-Item -ItemType Directory $disks | Out-Null
$env:CALVE_HOME = Join-Path $disks 'home'
$script:failed = 0

function Disk([string[]]$commands) {
    $commands | Set-Content -Encoding ascii (Join-Path $disks 'commands')
    diskpart /s (Join-Path $disks 'commands') | Out-Host
    if ($LASTEXITCODE -ne 0) { throw "diskpart ended with $LASTEXITCODE" }
}

function Check([string]$name, [scriptblock]$holds) {
    $ok = try { & $holds } catch { Write-Host $_; $false }
    if ($ok -eq $true) { Write-Host "ok: $name" } else { Write-Host "FAILED: $name"; $script:failed++ }
}

# Runs the program, and returns its receipt; throws where it fails.
function Receipt {
    $text = & $Calve @args --json
    if ($LASTEXITCODE -ne 0) { throw "calve $args ended with $LASTEXITCODE" }
    ($text -join "`n") | ConvertFrom-Json
}

function Same([string]$one, [string]$other) {
    $listed = foreach ($root in $one, $other) {
        , (Get-ChildItem -LiteralPath $root -Recurse -Force | Sort-Object FullName | ForEach-Object {
                $hash = if ($_.PSIsContainer) { '' } else { (Get-FileHash -LiteralPath $_.FullName).Hash }
                "$([IO.Path]::GetRelativePath($root, $_.FullName)) $hash $($_.LastWriteTimeUtc.Ticks) $($_.Attributes)"
            })
    }
    $null -eq (Compare-Object $listed[0] $listed[1])
}

function Make([string]$root) {
    foreach ($number in 1..300) {
        $folder = New-Item -ItemType Directory -Force (Join-Path $root "packages/p$($number % 20)")
        Set-Content (Join-Path $folder "$number.js") ('x' * (40 * $number))
    }
    $large = New-Object byte[] (8MB)
    (New-Object Random 1).NextBytes($large)
    [IO.File]::WriteAllBytes((Join-Path $root 'large'), $large)
    # Sparse: data in the middle of 64 MiB.
    $sparse = [IO.File]::Create((Join-Path $root 'sparse'))
    fsutil sparse setflag $sparse.Name | Out-Null
    $sparse.SetLength(64MB)
    $sparse.Position = 32MB
    $sparse.Write($large, 0, 64KB)
    $sparse.Close()
    # Below more than 260 characters.
    $long = '\\?\' + $root + '\' + ((1..12 | ForEach-Object { 'a directory with a long name' }) -join '\')
    [IO.Directory]::CreateDirectory($long) | Out-Null
    [IO.File]::WriteAllText("$long\file", 'deep')
    cmd /c mklink /j "$root\junction" "$root\packages" | Out-Null
}

try {
    foreach ($volume in @{ letter = 'R'; format = @('format', 'R:', '/FS:ReFS', '/Q', '/Y') },
        @{ letter = 'S'; format = @('format', 'S:', '/DevDrv', '/Q', '/Y') }) {
        $letter = $volume.letter
        Disk "create vdisk file=`"$disks\$letter.vhdx`" maximum=51200 type=expandable", 'attach vdisk', 'convert gpt', 'create partition primary', "assign letter=$letter"
        & $volume.format[0] $volume.format[1..9] | Out-Host
        if ($LASTEXITCODE -ne 0) { throw "format ended with $LASTEXITCODE" }
        $source = "${letter}:\source"
        Make $source
        Check "${letter}: blocks are shared" {
            $receipt = Receipt cp $source "${letter}:\clone"
            $receipt.strategy -eq 'reflink' -and $receipt.bytes.shared -ge 8MB
        }
        Check "${letter}: the clone equals its source" { Same $source "${letter}:\clone" }
        Check "${letter}: the clone is independent" {
            Set-Content "${letter}:\clone\large" 'other'
            (Get-Item "$source\large").Length -eq 8MB
        }
        Check "${letter}: a file that another program holds is named, and nothing is left" {
            $held = [IO.File]::Open("$source\packages\p1\1.js", 'Open', 'ReadWrite', 'None')
            try { $said = & $Calve cp $source "${letter}:\held" 2>&1 } finally { $held.Close() }
            $LASTEXITCODE -eq 1 -and "$said" -match '1\.js' -and -not (Test-Path "${letter}:\held")
        }
        Check "${letter}: to another volume it is copied" {
            (Receipt cp $source "$disks\copy-$letter").strategy -eq 'copy' -and (Same $source "$disks\copy-$letter")
        }
        Check "${letter}: a clone is removed, its junction's target stays" {
            Receipt rm --wait "${letter}:\clone" | Out-Null
            -not (Test-Path "${letter}:\clone") -and (Test-Path "$source\packages\p1\1.js")
        }
    }
} finally {
    foreach ($letter in 'R', 'S') {
        if (Test-Path "$disks\$letter.vhdx") { Disk "select vdisk file=`"$disks\$letter.vhdx`"", 'detach vdisk' }
    }
    Remove-Item -Recurse -Force "\\?\$disks"
}
exit [Math]::Min($script:failed, 1)
