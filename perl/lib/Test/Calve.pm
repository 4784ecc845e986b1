package Test::Calve;

use strict;
use warnings;
use 5.014;

use Carp qw(croak);
use Cwd qw(abs_path);
use Digest::MD5 qw(md5_hex);
use File::Basename qw(basename dirname);
use File::Temp ();
use JSON::PP ();
use POSIX ();

our $VERSION = '0.1.0';
our $errstr;

# What Test::mysqld takes and Calve has no use for: it chooses the place, and its program finds the server's programs.
my %UNUSED = map { $_ => 1 } qw(base_dir tmpdir mysql_install_db use_mysqld_initialize);
my %KNOWN = map { $_ => 1 } qw(template copy_data_from my_cnf auto_start mysqld);
# Of my.cnf, what Calve does in any case, or decides by `port`.
my %MY_CNF = map { $_ => 1 } qw(port skip-networking bind-address socket datadir pid-file);

# use Test::Calve 'Test::mysqld': a suite that names that class goes on as it is.
sub import {
    my ($class, @names) = @_;
    for my $name (@names) {
        croak "Test::Calve exports nothing but the name Test::mysqld, and not $name" if $name ne 'Test::mysqld';
        $INC{'Test/mysqld.pm'} = __FILE__;
        no strict 'refs';
        @{"${name}::ISA"} = $class;
        *{"${name}::errstr"} = \$errstr;
    }
}

sub new {
    my $class = shift;
    my %given = @_ == 1 ? %{ $_[0] } : @_;
    my $self = bless { auto_start => 2, %given, owner => $$, my_cnf => { %{ $given{my_cnf} || {} } } }, $class;
    for my $name (sort keys %given) {
        croak "Test::Calve->new: the argument $name is unknown" unless $KNOWN{$name} || $UNUSED{$name};
    }
    for my $option (sort keys %{ $self->{my_cnf} }) {
        (my $name = $option) =~ tr/_/-/;
        croak "Test::Calve->new: Calve does not set the option $option of my_cnf; set it by SQL in the template, or at the beginning of the test"
            unless $MY_CNF{$name};
    }
    croak 'Test::Calve->new: give template or copy_data_from, not both' if $given{template} && $given{copy_data_from};
    undef $errstr;
    if (!_found()) {
        $errstr = "the program calve is not in PATH; install calve $VERSION";
        return;
    }
    $self->start if $self->{auto_start};
    return $self;
}

sub start {
    my $self = shift;
    return if $self->{server};
    my $port = $self->{my_cnf}{port};
    my @tcp = defined $port ? "--tcp=$port" : ();
    my @words = (qw(start --quiet --json --owner-pid), $$, @tcp, '--', $self->{template} // $self->_template);
    $self->_is(_document('calve.db.server/1', @words));
    return;
}

# The template of Test::mysqld's arguments: it is made once, and again when the data directory or the server program has changed.
sub _template {
    my $self = shift;
    my $from = $self->{copy_data_from};
    my @from = ();
    my $name = 'test-calve-empty';
    if (defined $from) {
        my $path = abs_path($from) // croak "Test::Calve: copy_data_from: $from: $!";
        (my $plain = substr basename($path), 0, 24) =~ tr/A-Za-z0-9_-/-/c;
        ($name, @from) = ("test-calve-$plain-" . substr(md5_hex($path), 0, 8), '--from', $path);
    }
    push @from, '--server-bin', dirname($self->{mysqld}) if defined $self->{mysqld};
    _document('calve.db.template/1', qw(template create --quiet --json --engine mariadb), @from, $name);
    return $name;
}

sub _is {
    my ($self, $server) = @_;
    $self->{server} = $server;
    $self->{my_cnf}{socket} = $server->{socket};
    return;
}

sub stop {
    my $self = shift;
    my $server = delete $self->{server} or return;
    my $done = _run('stop', '--quiet', '--', $server->{name});
    # It may have ended by itself.
    _failed($done) if $done->{code} != 0 && _run('url', '--', $server->{name})->{code} == 0;
    return;
}

sub reset {
    my ($self, %args) = @_;
    my @to = defined $args{to} ? ('--to', $args{to}) : ();
    my $reset = _document('calve.db.servers/1', qw(reset --quiet --json), @to, '--', $self->_name);
    $self->_is($reset->{servers}[0]);
    return;
}

sub mark {
    my ($self, $name) = @_;
    _document('calve.db.', qw(mark --quiet --json --), $self->_name, $name);
    return;
}

sub _name {
    my $self = shift;
    return ($self->{server} // croak 'Test::Calve: the server does not run')->{name};
}

sub dsn {
    my ($self, %args) = @_;
    my $server = $self->{server} // croak 'Test::Calve: the server does not run';
    my $is_postgres = $server->{engine} eq 'postgres';
    if (defined $server->{tcp_port}) {
        %args = (host => '127.0.0.1', port => $server->{tcp_port}, password => $server->{password}, %args);
    }
    elsif ($is_postgres) {
        %args = (host => $server->{host}, port => $server->{port}, %args);
    }
    else {
        %args = (mysql_socket => $server->{socket}, %args);
    }
    %args = (user => $server->{user}, dbname => $server->{database}, %args);
    return ($is_postgres ? 'DBI:Pg:' : 'DBI:mysql:') . join ';', map { "$_=$args{$_}" } sort keys %args;
}

sub url         { $_[0]{server} && $_[0]{server}{url} }
sub pid         { $_[0]{server} && $_[0]{server}{pid} }
sub environment { $_[0]{server} && $_[0]{server}{environment} }
sub my_cnf      { $_[0]{my_cnf} }
sub mysqld      { $_[0]{mysqld} }
sub base_dir    { $_[0]{server} && dirname($_[0]{server}{data_directory}) }
sub setup       { }

sub read_log {
    my $self = shift;
    return _run('logs', '--', $self->_name)->{out};
}

sub start_mysqlds {
    my ($class, $count, @args) = @_;
    my @servers = map { $class->new(@args) // return } 1 .. $count;
    return @servers;
}

sub stop_mysqlds {
    my ($class, @servers) = @_;
    $_->stop for @servers;
    return;
}

sub DESTROY {
    my $self = shift;
    # Not the exit code of the commands, and not in a child that was forked.
    local ($?, $@);
    eval { $self->stop; 1 } or warn $@ if $self->{owner} == $$;
    return;
}

sub _found {
    return scalar grep { -x "$_/calve" && -f _ } split /:/, $ENV{PATH} // '';
}

# Runs `calve db`, and returns what it printed.
sub _run {
    my @words = @_;
    my $told = File::Temp->new;
    local ($?, $!);
    my $pid = open(my $out, '-|') // die "Test::Calve: cannot fork: $!\n";
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDERR, '>&', $told;
        { no warnings 'exec'; exec 'calve', 'db', @words; }
        print STDERR "cannot start the program calve: $!; install calve $VERSION, and put it into PATH\n";
        POSIX::_exit(127);
    }
    my $printed = do { local $/; <$out> };
    close $out;
    my $code = $?;
    seek $told, 0, 0;
    my $said = do { local $/; <$told> };
    return { code => $code >> 8 || $code, out => $printed // '', said => $said // '' };
}

# Runs it, and returns the document that it prints.
sub _document {
    my ($schema, @words) = @_;
    my $done = _run(@words);
    my $document = eval { JSON::PP::decode_json($done->{out}) } // {};
    my $fits = index($document->{schema} // '', $schema) == 0;
    # What earlier versions print of a server lacks its environment.
    $fits &&= $document->{environment} if $schema eq 'calve.db.server/1';
    _failed($done) unless $done->{code} == 0 && $fits;
    return $document;
}

sub _failed {
    my $done = shift;
    (my $said = $done->{said}) =~ s/\s+\z//;
    $said =~ s/\Aerror: //;
    # Not what the program says of what it understands.
    if ($done->{code} == 0 || $done->{code} == 2) {
        my $version = do { local ($?, $!); `calve --version 2>/dev/null` } // '';
        chomp $version;
        if ($version ne "calve $VERSION") {
            $version = 'not calve' if $version eq '';
            die "Test::Calve: the program calve in PATH is $version, and this is Test::Calve $VERSION: $said\nhint: install calve $VERSION\n";
        }
    }
    die 'Test::Calve: ' . ($said ne '' ? $said : "calve db ended with $done->{code}") . "\n";
}

1;

__END__

=encoding utf8

=head1 NAME

Test::Calve - a filled database server for each test, in milliseconds

=head1 SYNOPSIS

  use DBI;
  use Test::Calve;
  use Test::More;

  my $server = Test::Calve->new(template => 'shop');
  my $dbh = DBI->connect($server->dsn, undef, undef, { RaiseError => 1 });
  $server->reset;    # back to the template; connect again

A suite that uses L<Test::mysqld> changes one line:

  use Test::Calve 'Test::mysqld';    # was: use Test::mysqld;

=head1 DESCRIPTION

Each object is a database server (PostgreSQL or MariaDB) of its own, on a clone of a template. A template is made once, by
C<calve db template create>. A server starts in tens of milliseconds, whatever the size of its template, and ends with the object, and with
the process that has made it, also when that is killed. The program C<calve> must be in C<PATH>.

For a server for each test file without a line in the tests, see L<App::Prove::Plugin::Calve>.

=head1 METHODS

=head2 new

Returns an object, and starts its server. If the program C<calve> is not in C<PATH>, returns undef and sets C<$Test::Calve::errstr>.
The arguments are named, as in L<Test::mysqld>:

=over

=item template

The template.

=item copy_data_from

A data directory of MariaDB whose server was stopped. Calve makes a template of it, once, and each server a clone of that.
Without C<template> and C<copy_data_from> the server is an empty MariaDB with the database C<test>.

=item my_cnf

C<port> makes the server listen on that port of 127.0.0.1, with a password, which C<dsn> contains. C<skip-networking> is what it does in any
case. Calve sets no other options: C<new> dies if one is given.

=item auto_start

With 0, the server starts when C<start> is called.

=item mysqld

The server program that a template from C<copy_data_from> is for.

=back

C<base_dir>, C<tmpdir>, C<mysql_install_db> and C<use_mysqld_initialize> are accepted and change nothing.

=head2 dsn

Returns the DSN for L<DBI>: for L<DBD::mysql> or L<DBD::Pg>, with the user, and the password if there is one. Named arguments, such as
C<< dbname => 'test' >>, replace parts of it or are added.

=head2 reset

Puts the server back to its template, or with C<< to => $name >> to a mark. The address stays; sessions are cut off.

=head2 mark

Keeps the present state under a name, to which C<reset> goes back.

=head2 url, environment, pid, base_dir, my_cnf, read_log

The address as a URL; a hash of the environment variables by which programs find the server and no other (undef: must not be set); the
server's process; its directory; a hash with C<socket>; the log.

=head2 start, stop

Start and end the server.

=head2 start_mysqlds, stop_mysqlds

As in L<Test::mysqld>.

=head1 SEE ALSO

L<App::Prove::Plugin::Calve>, L<Test::mysqld>

=head1 LICENSE

MIT or Apache-2.0, as you like.

=cut
