package Shop;

# A template `shop` for the tests: a table `customers` with 100 rows, by PostgreSQL.

use strict;
use warnings;
use File::Temp qw(tempdir);
use Test::More;

our $home;
my $owner = $$;

sub import {
    my ($class, @programs) = @_;
    strict->import;
    warnings->import;
    # Open to the user that a server of root runs as.
    $home = tempdir('calve-perl-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $home or die "$home: $!";
    $ENV{CALVE_HOME} = $home;
    for my $program ('calve', @programs) {
        next if grep { -x "$_/$program" } split /:/, $ENV{PATH};
        die "must not be skipped in CI: $program is missing\n" if $ENV{CI};
        plan skip_all => "$program is not in PATH";
    }
    return unless grep { $_ eq 'psql' } @programs;
    my $fill = 'CREATE TABLE customers AS SELECT generate_series(1, 100) AS id';
    system(qw(calve db template create -q shop --engine postgres -- psql -q -v ON_ERROR_STOP=1 -c), $fill) == 0 or die 'no template';
}

# What the client program of the server prints.
sub psql {
    my ($url, $sql) = @_;
    return said('psql', $url, '-qtAc', $sql);
}

sub said {
    my @command = @_;
    open my $out, '-|', @command or die "$command[0]: $!";
    my $said = do { local $/; <$out> };
    close $out or die "@command: $?";
    chomp $said;
    return $said;
}

sub running {
    return scalar grep { !/ended/ } split /\n/, said(qw(calve db list));
}

END {
    local $?;
    if ($home && $owner == $$) {
        system 'calve db stop --all -q';
        system 'calve db gc -q';
    }
}

1;
