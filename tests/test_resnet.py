"""The network is the one of the literature, and its training learns, repeats and leaves no trace."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is absent; it comes with the extra vision")

from reproduction import resnet  # noqa: E402 (torch decides whether this module is tested)
from reproduction.resnet import ImageClassifier, Recipe, ResNet, augmented, fit, logits  # noqa: E402


@pytest.fixture(autouse=True)
def on_one_core(monkeypatch):
    """Small steps on several threads wait for one another for longer than they compute."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def resnet34():
    return resnet.resnet34(1000)


def small_network(n_classes=2, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ImageClassifier(ResNet((1, 1, 1, 1), n_classes), [0.5] * 3, [0.3] * 3)


def bright_and_dark(n=32, size=16, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    images = rng.integers(0, 100, (n, size, size, 3)) + 150 * y[:, None, None, None]
    return images.astype(np.uint8), y


def weights_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def equal(weights, others):
    return all(torch.equal(weights[name], others[name]) for name in weights)


def test_number_of_parameters_is_that_of_the_literature(resnet34):
    assert sum(p.numel() for p in resnet34.parameters()) == 21_797_672


def test_names_and_shapes_of_weights_are_torchvisions(resnet34):
    shapes = {name: tuple(value.shape) for name, value in resnet34.state_dict().items()}
    n_convolutions = 1 + 2 * (3 + 4 + 6 + 3) + 3
    assert len(shapes) == n_convolutions * (1 + 5) + 2
    assert {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_mean": (64,),
        "layer1.0.conv1.weight": (64, 64, 3, 3),
        "layer1.2.bn2.weight": (64,),
        "layer2.0.conv1.weight": (128, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.num_batches_tracked": (),
        "layer3.5.conv2.weight": (256, 256, 3, 3),
        "layer4.2.conv2.weight": (512, 512, 3, 3),
        "fc.weight": (1000, 512),
        "fc.bias": (1000,),
    }.items() <= shapes.items()
    assert "layer1.0.downsample.0.weight" not in shapes


def test_initial_weights_keep_the_variance_of_gradients(resnet34):
    """Normal of variance 2 / (outputs x kernel), five standard errors; scales 1, shifts 0."""
    for module in resnet34.modules():
        if isinstance(module, torch.nn.Conv2d):
            variance = 2 / (module.out_channels * module.kernel_size[0] ** 2)
            found = module.weight.detach().square().mean().item()
            assert abs(found / variance - 1) < 5 * (2 / module.weight.numel()) ** 0.5
        elif isinstance(module, torch.nn.BatchNorm2d):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()


@pytest.mark.parametrize("size", [28, 64])
def test_images_of_any_size_get_a_logit_for_each_class(size):
    assert resnet.resnet34(5).eval()(torch.zeros(2, 3, size, size)).shape == (2, 5)


def test_layers_halve_the_picture(resnet34):
    x, shapes = torch.zeros(1, 64, 32, 32), []
    for layer in (resnet34.layer1, resnet34.layer2, resnet34.layer3, resnet34.layer4):
        x = layer.eval()(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes == [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]


def test_block_adds_what_it_learns_to_what_it_gets():
    block = resnet.BasicBlock(8, 8).eval()
    torch.nn.init.zeros_(block.bn2.weight)
    x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(x), x.relu())


def test_network_is_torchvisions():
    try:
        from torchvision.models import resnet34 as theirs
    except (ImportError, RuntimeError) as error:  # its operators fail beside another index's torch
        pytest.skip(f"torchvision can't be imported: {error}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        original = theirs(num_classes=7)
        torch.manual_seed(0)
        network = resnet.resnet34(7)
        batch = torch.randn(2, 3, 64, 64)
    assert list(original.state_dict()) == list(network.state_dict())
    assert equal(original.state_dict(), network.state_dict())
    assert torch.allclose(original.eval()(batch), network.eval()(batch), atol=1e-5)


def test_images_are_normalised_by_the_training_images():
    images = np.random.default_rng(0).integers(0, 256, (6, 9, 9, 3), np.uint8) // np.array(
        [1, 2, 4], np.uint8
    )
    x = resnet.untrained(images, 2).normalised(torch.tensor(images))
    assert x.shape == (6, 3, 9, 9)
    assert x.mean(dim=(0, 2, 3)).numpy() == pytest.approx(0, abs=1e-5)
    assert x.std(dim=(0, 2, 3), correction=0).numpy() == pytest.approx(1, abs=1e-5)


def test_normalisation_is_saved_with_the_weights():
    assert {"mean", "std"} <= small_network().state_dict().keys()


def test_images_of_one_colour_can_be_normalised():
    images = np.full((3, 8, 8, 3), 9, np.uint8)
    assert (resnet.untrained(images, 2).normalised(torch.tensor(images)).abs() < 1e-4).all()


def test_seed_sets_the_initial_weights():
    images, _ = bright_and_dark(4)
    first, again, other = (weights_of(resnet.untrained(images, 3, seed)) for seed in (1, 1, 2))
    assert equal(first, again)
    assert not equal(first, other)


def test_training_learns_bright_from_dark():
    images, y = bright_and_dark(32)
    unseen, truth = bright_and_dark(16, seed=1)
    network = small_network()
    epochs = list(fit(network, images, y, Recipe(epochs=8, batch_size=16)))
    assert [epoch.number for epoch in epochs] == list(range(1, 9))
    assert epochs[-1].loss < 0.2 < epochs[0].loss
    assert epochs[-1].accuracy > 0.9
    assert (logits(network, unseen).argmax(axis=1) == truth).all()


@pytest.fixture
def no_augmentation(monkeypatch):
    """The generator of each batch; the batches stay as they are."""
    generators = []

    def unchanged(batch, generator):
        generators.append(generator)
        return batch

    monkeypatch.setattr(resnet, "augmented", unchanged)
    return generators


def test_reported_loss_and_accuracy_are_means_over_images(no_augmentation):
    """Of a network that can't learn: its loss is that of the fixed logits."""
    images, y = bright_and_dark(7)
    network = small_network()
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    network.network.fc.bias.data[:] = torch.tensor([0.0, 1.0])
    still = Recipe(epochs=1, batch_size=2, learning_rate=1e-12, weight_decay=0)
    [epoch] = fit(network, images, y, still)
    log_share = np.log(np.exp([0, 1]) / np.exp([0, 1]).sum())
    assert epoch.loss == pytest.approx(-log_share[y].mean(), abs=1e-5)
    assert epoch.accuracy == pytest.approx(3 / 7)


@pytest.fixture
def steps(monkeypatch):
    """The learning rate and the size of the last layer's gradient at each step."""
    taken = []

    class Watched(torch.optim.AdamW):
        def step(self, closure=None):
            last_weight = self.param_groups[0]["params"][-1]
            taken.append((self.param_groups[0]["lr"], last_weight.grad.norm().item()))
            return super().step(closure)

    monkeypatch.setattr(torch.optim, "AdamW", Watched)
    return taken


def test_learning_rate_rises_to_its_peak_and_falls_to_nothing(steps):
    list(fit(small_network(), *bright_and_dark(8), Recipe(epochs=10, batch_size=4, learning_rate=0.02)))
    rates = [rate for rate, _ in steps]
    peak = int(np.argmax(rates))
    assert len(rates) == 20
    assert rates[peak] == pytest.approx(0.02)
    assert 0 < peak < 10
    assert (np.diff(rates[: peak + 1]) > 0).all()
    assert (np.diff(rates[peak:]) < 0).all()
    assert rates[-1] < 1e-6


def test_each_step_follows_its_own_gradient(no_augmentation, steps):
    """That of equal batches and unchanged weights is the same at each step."""
    still = Recipe(epochs=3, batch_size=8, learning_rate=1e-12, weight_decay=0)
    list(fit(small_network(), *bright_and_dark(8), still))
    norms = [norm for _, norm in steps]
    assert norms[0] > 0
    assert norms == pytest.approx([norms[0]] * 3, rel=1e-3)


def trained(seed=0):
    network = small_network()
    epochs = list(fit(network, *bright_and_dark(10), Recipe(epochs=2, batch_size=4, seed=seed)))
    return weights_of(network), epochs


@pytest.fixture(scope="module")
def trained_before():
    return trained()


def test_same_seed_same_network(trained_before):
    first, again, other = trained_before, trained(), trained(1)
    assert equal(first[0], again[0])
    assert first[1] == again[1]
    assert not equal(first[0], other[0])


def test_order_and_augmentation_both_follow_the_seed(no_augmentation):
    first, other = trained(0), trained(1)
    assert not equal(first[0], other[0])
    assert [generator.initial_seed() for generator in no_augmentation] == [0] * 4 + [1] * 4


def test_random_numbers_of_others_are_left_alone():
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    images, _ = bright_and_dark(4)
    resnet.untrained(images, 2)
    trained()
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


@pytest.mark.parametrize(("n", "batch_size"), [(2, 8), (3, 2), (9, 4), (9, 8), (17, 16)])
def test_every_image_is_in_one_batch_of_an_epoch_and_none_is_alone(n, batch_size, monkeypatch):
    batches = []

    def keep(batch, generator):
        batches.append(batch)
        return batch

    monkeypatch.setattr(resnet, "augmented", keep)
    images = np.broadcast_to(np.arange(n, dtype=np.uint8)[:, None, None, None], (n, 16, 16, 3))
    list(fit(small_network(), images, np.arange(n) % 2, Recipe(epochs=1, batch_size=batch_size)))
    assert min(map(len, batches)) >= min(n, batch_size)
    seen = torch.cat(batches)[:, 0, 0, 0] * 0.3 + 0.5
    assert sorted((seen * 255).round().int().tolist()) == list(range(n))


def test_weights_decay_but_scales_and_shifts_do_not():
    """With zero gradients all that is left is the decay."""
    network = small_network()
    before = weights_of(network)
    torch.nn.init.zeros_(network.network.fc.weight)
    network.network.fc.weight.requires_grad_(False)
    list(fit(network, *bright_and_dark(4), Recipe(epochs=3, batch_size=2, weight_decay=10.0)))
    after = network.state_dict()
    assert after["network.conv1.weight"].norm() < before["network.conv1.weight"].norm()
    assert torch.equal(after["network.bn1.weight"], before["network.bn1.weight"])


def test_scores_do_not_depend_on_the_batch():
    images, y = bright_and_dark(11)
    network = small_network(n_classes=3)
    list(fit(network, images, y, Recipe(epochs=1, batch_size=4)))
    whole = logits(network, images)
    assert whole.dtype == np.float32
    assert whole.shape == (11, 3)
    for batch_size in (1, 4, 10):
        assert logits(network, images, batch_size) == pytest.approx(whole, abs=1e-5)


def test_scoring_changes_nothing():
    images, _ = bright_and_dark(6)
    network = small_network().train()
    before = weights_of(network)
    assert np.array_equal(logits(network, images), logits(network, images))
    assert network.training
    logits(network.eval(), images)
    assert not network.training
    assert equal(before, network.state_dict())


def test_scoring_between_epochs_does_not_change_training(trained_before):
    images, y = bright_and_dark(10)
    network = small_network()
    for _ in fit(network, images, y, Recipe(epochs=2, batch_size=4)):
        logits(network, images)
        network.eval()
    assert equal(trained_before[0], network.state_dict())


def ramp(n, size=33):
    """Brightness grows to the right, the same in each image."""
    return torch.linspace(-1, 1, size).expand(n, 3, size, size)


def test_augmentation_is_of_each_image_and_follows_its_generator():
    first, again, other = (augmented(ramp(8), torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert first.shape == (8, 3, 33, 33)
    assert torch.equal(first, again)
    assert not torch.isclose(first, other).all()
    assert len({round(image.mean().item(), 4) for image in first}) == 8


def test_augmentation_mirrors_half_of_the_images_and_turns_none_over():
    """Over 1,000 images, five standard errors of a fair coin."""
    n = 1_000
    changed = augmented(ramp(n, 9), torch.Generator().manual_seed(0))
    to_the_right = (changed[:, 0, :, 5:].mean(dim=(1, 2)) > changed[:, 0, :, :4].mean(dim=(1, 2))).float()
    assert abs(to_the_right.mean().item() - 0.5) < 5 * 0.5 / n**0.5
    downwards = augmented(ramp(n, 9).transpose(2, 3), torch.Generator().manual_seed(0))
    assert (downwards[:, 0, 6:].mean(dim=(1, 2)) > downwards[:, 0, :3].mean(dim=(1, 2))).all()


def test_augmentation_keeps_images_recognisable():
    """The middle of a disc stays in it, its surroundings outside."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, 41), torch.linspace(-1, 1, 41), indexing="ij")
    disc = (x**2 + y**2 < 0.25).float().expand(200, 3, 41, 41)
    changed = augmented(disc, torch.Generator().manual_seed(0))
    inside = changed[:, 0, 20, 20]
    corners = changed[:, 0, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert (inside[:, None] > corners + 0.5).all()


@pytest.mark.parametrize(
    "images",
    [np.zeros((2, 8, 8, 3)), np.zeros((2, 8, 8), np.uint8), np.zeros((2, 3, 8, 8), np.uint8)],
    ids=["floats", "grey", "channels first"],
)
def test_other_images_are_refused(images):
    for use in (
        lambda: resnet.untrained(images, 2),
        lambda: next(fit(small_network(), images, [0, 1])),
        lambda: logits(small_network(), images),
    ):
        with pytest.raises(ValueError, match=r"Images must be uint8 of shape \(n, size, size, 3\); got"):
            use()


@pytest.mark.parametrize("y", [[0, 2], [-1, 0], [0.0, 1.0]])
def test_labels_out_of_range_are_refused(y):
    with pytest.raises(ValueError, match="Labels must be whole numbers from 0 to 1"):
        next(fit(small_network(), bright_and_dark(2)[0], y))


@pytest.mark.parametrize(("n", "y"), [(1, [0]), (2, [0]), (2, [[0], [1]])])
def test_images_need_a_label_each(n, y):
    with pytest.raises(ValueError, match="at least 2 images and a label for each"):
        next(fit(small_network(), bright_and_dark(n)[0], y))


@pytest.mark.parametrize(
    ("change", "message"), [({"epochs": 0}, "epochs"), ({"batch_size": 1}, "batch_size")]
)
def test_impossible_recipe_is_refused(change, message):
    with pytest.raises(ValueError, match=f"{message} must be at least"):
        Recipe(**change)
